package dag_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowlet/flowlet/dag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		e := dag.New(dag.Policy{}, func(k string, id dag.ID, facts int, err error) { n += facts }, dag.Options[string]{Validate: true})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- e.Run(ctx) }()
		g := graph(node{ID: id("a"), Key: key("x"), Run: func(context.Context) (int, error) { return 7, nil }})
		e.Step("k", g)
		synctest.Wait()
		require.Equal(t, 7, n)
		require.Equal(t, dag.Done, e.Memo("k")[id("a")].State)
		stop()
		require.NoError(t, <-done)
	})
}
