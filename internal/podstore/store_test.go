package podstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
)

func TestTopicOfANameChangesWithItsHolder(t *testing.T) {
	s := podstore.New()
	v := static("u1", "default", "web")
	topic := []string{podstore.TopicName("web-n_default")}
	require.Equal(t, topic, s.Put(v), "first sight")
	require.Empty(t, s.Put(v), "nothing new")
	v = after(v, observed(200, pod.Sandbox{ID: "s1", Ready: true}))
	require.Equal(t, topic, s.Put(v), "something runs now")
	require.Empty(t, s.Put(after(v, observed(202, pod.Sandbox{ID: "s1"}))), "stopped, but still there")
	require.Equal(t, topic, s.Put(after(v, pod.SpecGone{Source: pod.SourceFile, At: time.Unix(300, 0)})), "it is on its way out")
	require.Equal(t, topic, s.Delete("u1"))
	require.Empty(t, s.Delete("u1"), "gone already")
	_, ok := s.Get("u1")
	require.False(t, ok)
	require.Empty(t, s.Keys())
}

func TestTopicsOfAPodThatIsRenamed(t *testing.T) {
	s := podstore.New()
	s.Put(static("u1", "default", "web"))
	require.Equal(t, []string{podstore.TopicName("web-n_default"), podstore.TopicName("api-n_default")}, s.Put(static("u1", "default", "api")))
	_, held := s.NameHolder(static("u2", "default", "web").State)
	require.False(t, held, "the old name is free")
}

func TestNameHolder(t *testing.T) {
	first := static("u1", "default", "web")
	second := static("u2", "default", "web")
	second.State.Incarnation = first.State.Incarnation + 1
	running := after(second, observed(200, pod.Sandbox{ID: "s1", Ready: true}))
	ending := after(second, pod.SpecGone{Source: pod.SourceFile, At: time.Unix(300, 0)})
	api := static("u2", "default", "web")
	spec := *api.State.Spec
	spec.Source = pod.SourceAPI
	api.State.Spec = &spec

	tests := map[string]struct {
		asks   podstore.View
		others []podstore.View
		want   pod.Key
	}{
		"nobody else":                   {asks: first},
		"an older pod of that name":     {asks: second, others: []podstore.View{first}, want: "u1"},
		"a younger pod that is waiting": {asks: first, others: []podstore.View{second}},
		"a younger pod that runs":       {asks: first, others: []podstore.View{running}, want: "u2"},
		"a younger pod that is ending":  {asks: first, others: []podstore.View{ending}, want: "u2"},
		"a pod of the API":              {asks: first, others: []podstore.View{api}},
		"another name":                  {asks: second, others: []podstore.View{static("u1", "default", "api")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := podstore.New()
			for _, v := range append(tt.others, tt.asks) {
				s.Put(v)
			}
			got, held := s.NameHolder(tt.asks.State)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.want != "", held)
		})
	}
}

func TestAllIsInOrder(t *testing.T) {
	s := podstore.New()
	for _, v := range []podstore.View{static("u3", "b", "x"), static("u2", "a", "z"), static("u1", "a", "y")} {
		s.Put(v)
	}
	var keys []pod.Key
	for _, v := range s.All() {
		keys = append(keys, v.Key)
	}
	require.Equal(t, []pod.Key{"u1", "u2", "u3"}, keys)
	require.ElementsMatch(t, keys, s.Keys())
}

func TestSourcesAndRuntime(t *testing.T) {
	s := podstore.New()
	require.False(t, s.Synced("file"))
	s.SetSynced("file")
	require.True(t, s.Synced("file"))
	require.False(t, s.Synced("http"))
	s.SetRuntime(pod.RuntimeStatus{Ready: true})
	require.True(t, s.Runtime().Ready)
}

func TestDetailIsAskedForOnce(t *testing.T) {
	s := podstore.New()
	require.False(t, s.HasContainer("u1", "c1", pod.Running), "no such pod")
	require.False(t, s.HasSandbox("u1", "s1"), "no such pod")
	o := observed(200, pod.Sandbox{ID: "s1", Ready: true}, pod.Sandbox{ID: "s2", Detailed: true})
	o.Containers = []pod.Container{{ID: "c1", Name: "a", State: pod.Running, Detailed: true}, {ID: "c2", Name: "b", State: pod.Exited}}
	s.Put(after(static("u1", "default", "web"), o))
	require.True(t, s.HasContainer("u1", "c1", pod.Created))
	require.True(t, s.HasContainer("u1", "c1", pod.Running))
	require.False(t, s.HasContainer("u1", "c1", pod.Exited), "its exit is not known")
	require.False(t, s.HasContainer("u1", "c2", pod.Exited), "a row of a list only")
	require.False(t, s.HasContainer("u1", "c3", pod.Created))
	require.False(t, s.HasSandbox("u1", "s1"))
	require.True(t, s.HasSandbox("u1", "s2"))
	require.False(t, s.HasSandbox("u1", "s3"))
}
