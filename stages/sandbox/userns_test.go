package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/sandbox"
)

func namespaces(t *testing.T, r sandbox.IDRange, pods ...string) *sandbox.UserNamespaces {
	t.Helper()
	dir := t.TempDir()
	for _, p := range pods {
		require.NoError(t, os.Mkdir(filepath.Join(dir, p), 0o755))
	}
	return &sandbox.UserNamespaces{PodsDir: dir, PerPod: 65536, Range: func() (sandbox.IDRange, error) { return r, nil }}
}

func ids(first uint32) *runtimeapi.UserNamespace {
	one := []*runtimeapi.IDMapping{{HostId: first, Length: 65536}}
	return &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: one, Gids: one}
}

func TestUserNamespacesOfPodsNeverOverlap(t *testing.T) {
	u := namespaces(t, sandbox.IDRange{First: 65536, Count: 3 * 65536}, "a", "b", "c", "d")
	none, err := u.Find("a")
	require.NoError(t, err)
	require.Nil(t, none)
	var wait sync.WaitGroup
	got := map[uint32]bool{}
	var mu sync.Mutex
	for _, uid := range []types.UID{"a", "b", "c"} {
		wait.Go(func() {
			n, err := u.Allocate(uid)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				got[n.GetUids()[0].GetHostId()] = true
			}
		})
	}
	wait.Wait()
	require.Equal(t, map[uint32]bool{65536: true, 131072: true, 196608: true}, got)
	_, err = u.Allocate("d")
	require.ErrorContains(t, err, "all 3 ranges")

	was, err := u.Find("b")
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(u.PodsDir, "b")))
	again, err := u.Allocate("d")
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(was, again, protocmp.Transform()), "free with the pod's directory")
	same, err := u.Allocate("d")
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(again, same, protocmp.Transform()))
}

// The format is that of kubelet v1.37.2.
func TestUserNamespaceFileIsTheKubelets(t *testing.T) {
	const text = `{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],"gidMappings":[{"hostId":65536,"containerId":0,"length":65536}]}`
	u := namespaces(t, sandbox.IDRange{First: 65536, Count: 2 * 65536}, "a", "b")
	_, err := u.Allocate("a")
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(u.PodsDir, "a", "userns"))
	require.NoError(t, err)
	require.JSONEq(t, text, string(data))

	for name, bad := range map[string]string{
		"damaged":        `{`,
		"no range":       `{}`,
		"not the same":   `{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],"gidMappings":[{"hostId":0,"containerId":0,"length":65536}]}`,
		"root not in it": `{"uidMappings":[{"hostId":65536,"containerId":5,"length":65536}],"gidMappings":[{"hostId":65536,"containerId":5,"length":65536}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(filepath.Join(u.PodsDir, "a", "userns"), []byte(bad), 0o600))
			_, err := u.Find("a")
			require.ErrorContains(t, err, filepath.Join("a", "userns"))
			_, err = u.Allocate("b")
			require.ErrorContains(t, err, filepath.Join("a", "userns"), "its IDs could be given out twice")
		})
	}
}

func TestUserNamespaceNeedsThePodsDirectory(t *testing.T) {
	_, err := namespaces(t, sandbox.IDRange{First: 65536, Count: 65536}).Allocate("a")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestIDRangeOf(t *testing.T) {
	const k = 65536
	for name, tt := range map[string]struct {
		uid, gid string // "-": no such file
		want     sandbox.IDRange
		err      string
	}{
		"no files":         {"-", "-", sandbox.IDRange{First: k, Count: 1<<32 - k}, ""},
		"other users only": {"bob:1:5\n", "", sandbox.IDRange{First: k, Count: 1<<32 - k}, ""},
		"given":            {"bob:1:5\nkubelet:131072:655360\n", "kubelet:131072:655360\n", sandbox.IDRange{First: 131072, Count: 655360}, ""},
		"only one file":    {"kubelet:131072:655360\n", "-", sandbox.IDRange{}, "one range each"},
		"not the same":     {"kubelet:131072:655360\n", "kubelet:131072:65536\n", sandbox.IDRange{}, "the same in both"},
		"two ranges":       {"kubelet:131072:65536\nkubelet:262144:65536\n", "kubelet:131072:65536\n", sandbox.IDRange{}, "one range each"},
		"from 0":           {"kubelet:0:65536\n", "kubelet:0:65536\n", sandbox.IDRange{}, "not at 0"},
		"odd begin":        {"kubelet:100000:65536\n", "kubelet:100000:65536\n", sandbox.IDRange{}, "multiple of 65536"},
		"odd length":       {"kubelet:65536:1000\n", "kubelet:65536:1000\n", sandbox.IDRange{}, "multiple of 65536"},
		"too long":         {"kubelet:65536:4294967296\n", "kubelet:65536:4294967296\n", sandbox.IDRange{}, "multiple of 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := func(name, text string) string {
				p := filepath.Join(dir, name)
				if text != "-" {
					require.NoError(t, os.WriteFile(p, []byte(text), 0o600))
				}
				return p
			}
			got, err := sandbox.IDRangeOf("kubelet", path("subuid", tt.uid), path("subgid", tt.gid), k)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestSandboxWithAUserNamespaceOfItsOwn(t *testing.T) {
	own := state(func(p *v1.Pod) { p.Spec.HostUsers = ptr.To(false) })
	rt, ev := &fakeRuntime{}, &recorder{}
	can := false
	u := namespaces(t, sandbox.IDRange{First: 65536, Count: 65536}, "u-1")
	b := sandbox.New(rt, ev, sandbox.Settings{
		Users: u, Features: func(*v1.Pod) pod.HandlerFeatures { return pod.HandlerFeatures{UserNamespaces: can} },
	})
	_, err := b.Create(t.Context(), own, 0)
	const why = "can't set `spec.hostUsers: false`, runtime does not support user namespaces"
	require.ErrorContains(t, err, why)
	require.Equal(t, []string{" Warning FailedCreatePodSandBox: Failed to create pod sandbox: " + why}, ev.lines)
	require.Empty(t, rt.calls)

	early, err := b.Config(own, 0)
	require.NoError(t, err, "a pull may come first")
	require.Empty(t, early.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions().GetUids())

	can = true
	_, err = b.Create(t.Context(), own, 0)
	require.NoError(t, err)
	users := func(c *runtimeapi.PodSandboxConfig) *runtimeapi.UserNamespace {
		return c.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions()
	}
	require.Empty(t, cmp.Diff(ids(65536), users(rt.config), protocmp.Transform()))
	later, err := b.Config(own, 0)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(ids(65536), users(later), protocmp.Transform()), fmt.Sprint("the containers' ", "request is the same"))
}
