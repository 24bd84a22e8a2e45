package file_test

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/manifest"
	"github.com/flowlet/flowlet/sources/file"
)

// TestRandomEdits: whatever people do to four files that fight for three
// names and two UIDs, a name is never set twice, nothing is gone that was not
// set, and when nobody edits, nothing changes.
func TestRandomEdits(t *testing.T) {
	const seeds, edits = 40, 30
	for seed := range int64(seeds) {
		in(t, func(t *testing.T, w *world) {
			r := rand.New(rand.NewSource(seed))
			live := map[types.UID]string{}
			w.start()
			for range edits {
				for range 1 + r.Intn(3) {
					w.put(fmt.Sprintf("%c.yaml", 'a'+r.Intn(4)), randomText(r))
				}
				w.notify()
				w.pass(time.Second)
				follow(t, seed, live, w)
				w.pass(3 * file.DefaultPeriod)
				require.Empty(t, w.told(), "seed %d: it flaps", seed)
			}
		})
	}
}

func randomText(r *rand.Rand) string {
	name := string("pqr"[r.Intn(3)])
	switch r.Intn(6) {
	case 0:
		return "" // removed
	case 1:
		return "apiVersion: v1\nkind: Po"
	case 2:
		return pod(name, fmt.Sprint("i:", r.Intn(3)), uid(fmt.Sprint("u-", r.Intn(2))))
	}
	return pod(name, fmt.Sprint("i:", r.Intn(3)))
}

// follow folds what was told into live, and compares that with the statuses.
func follow(t *testing.T, seed int64, live map[types.UID]string, w *world) {
	t.Helper()
	for _, u := range w.updates {
		switch u.Kind {
		case manifest.Gone:
			require.Equal(t, u.FullName, live[u.UID], "seed %d: gone but never set", seed)
			delete(live, u.UID)
		case manifest.Set:
			for uid, name := range live {
				require.False(t, name == u.FullName && uid != u.UID, "seed %d: %s is set twice", seed, name)
			}
			live[u.UID] = u.FullName
		}
	}
	w.updates = nil
	set := 0
	for _, s := range w.source.Files() {
		if s.UID != "" && live[s.UID] == s.FullName && s.Conflict == "" {
			set++
		}
		require.False(t, s.UID == "" && s.Err == nil, "seed %d: %s is neither a pod nor wrong", seed, s.Path)
	}
	require.LessOrEqual(t, set, len(live), "seed %d", seed)
	require.LessOrEqual(t, len(live), len(w.source.Files()), "seed %d", seed)
}
