package config_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPolicyFileOverridesWhatItNames(t *testing.T) {
	c := load(t, map[string]string{"p.yaml": `
classes:
  image: {slots: 2, deadline: 10m, backoff: {initial: 1s}, maxLost: 1, order: fifo}
  image/quay.io: {slots: 9}
  extra: {slots: 3}
  default: {deadline: 0s}
`}, "--policy=DIR/p.yaml")
	base := config.DefaultClassPolicy()
	image := c.Policy["image"]
	require.Equal(t, dag.Class{
		Slots: 2, Order: dag.ByArrival, Deadline: 10 * time.Minute, Grace: base["image"].Grace, MaxLost: 1,
		Backoff: dag.Backoff{Initial: time.Second, Max: 300 * time.Second, Factor: 2},
	}, image)
	require.Equal(t, 9, c.Policy["image/quay.io"].Slots)
	require.Equal(t, base["image"].Backoff, c.Policy["image/quay.io"].Backoff, "a registry inherits from image")
	require.Equal(t, 3, c.Policy["extra"].Slots)
	require.Equal(t, base[""].Deadline, c.Policy["extra"].Deadline)
	require.Zero(t, c.Policy[""].Deadline)
	require.Equal(t, base["mount"], c.Policy["mount"])
}

func TestPolicyIsReadAgain(t *testing.T) {
	c := load(t, map[string]string{"p.yaml": "classes: {image: {slots: 2}}"}, "--policy=DIR/p.yaml")
	require.NoError(t, os.WriteFile(c.PolicyFile, []byte("classes: {mount: {slots: 3}}"), 0o600))
	p, err := c.ReloadPolicy()
	require.NoError(t, err)
	require.Equal(t, 3, p["mount"].Slots)
	require.Equal(t, config.DefaultClassPolicy()["image"].Slots, p["image"].Slots, "what the file no longer says is back at its default")
	require.NoError(t, os.WriteFile(c.PolicyFile, []byte("classes: ["), 0o600))
	_, err = c.ReloadPolicy()
	require.ErrorContains(t, err, c.PolicyFile)
}

func TestPolicyFileErrorsNameTheField(t *testing.T) {
	tests := map[string]string{
		"classes: {image: {slotz: 1}}":                `unknown field "classes.image.slotz"`,
		"class: {}":                                   `unknown field "class"`,
		"classes: {image: {slots: 1}, image: {}}":     "image",
		"classes: {image: {slots: x}}":                "p: classes.image: ",
		"classes: {image: 3, mount: {}}":              "p: classes.image: ",
		"classes: {image: {slots: -1}}":               "p: classes.image.slots: -1: must be 0",
		"classes: {image: {order: lifo}}":             "p: classes.image.order: lifo: must be fifo or priority",
		"classes: {image: {deadline: soon}}":          "p: classes.image.deadline: soon",
		"classes: {image: {backoff: {initial: -1s}}}": "p: classes.image.backoff.initial",
		"classes: {image: {backoff: {initial: 1h}}}":  "may not be more than backoff.max",
		"classes: {image: {backoff: {factor: 0.5}}}":  "p: classes.image.backoff.factor",
		"classes: {image: {backoff: {jitter: 2}}}":    "p: classes.image.backoff.jitter",
		"classes: {image: {maxLost: -1, grace: -1s}}": "p: classes.image.grace",
		"[": "p: ",
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			_, err := config.DecodePolicy("p", []byte(text), config.DefaultClassPolicy())
			require.ErrorContains(t, err, want)
		})
	}
	empty, err := config.DecodePolicy("p", nil, config.DefaultClassPolicy())
	require.NoError(t, err)
	require.Equal(t, config.DefaultClassPolicy(), empty)
}

func TestDefaultSlotsFollowTheMachine(t *testing.T) {
	for cpus, want := range map[int]int{1: 4, 2: 4, 4: 8, 64: 32} {
		require.Equal(t, want, config.DefaultPolicy(cpus)["sandbox"].Slots, cpus)
	}
}

func FuzzDecodePolicy(f *testing.F) {
	f.Add([]byte("classes: {image: {slots: 1, backoff: {factor: 3}}}"))
	f.Add([]byte("classes: {image: null}"))
	f.Add([]byte("classes: {\"\": {order: fifo}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := config.DecodePolicy("p", data, config.DefaultClassPolicy())
		if err == nil {
			require.Contains(t, p, "image", "defaults are never lost")
		}
	})
}

func TestWatchSeesWritesAndRenames(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "p.yaml")
	require.NoError(t, os.WriteFile(file, []byte("classes: {}"), 0o600))
	ctx, cancel := context.WithCancelCause(t.Context())
	calls, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() { ended <- config.Watch(ctx, file, func() { calls <- struct{}{} }) }()
	wait := func(what string) {
		t.Helper()
		select {
		case <-calls:
		case <-time.After(time.Minute):
			t.Fatal("no call after " + what)
		}
	}
	wait("start")
	require.NoError(t, os.WriteFile(file, []byte("classes: {image: {slots: 1}}"), 0o600))
	wait("write")
	for len(calls) > 0 {
		<-calls
	}
	require.NoError(t, os.WriteFile(file+".new", []byte("classes: {}"), 0o600))
	require.NoError(t, os.Rename(file+".new", file))
	wait("rename")
	cancel(context.Canceled)
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Error(t, config.Watch(t.Context(), filepath.Join(dir, "no", "file"), func() {}))
}
