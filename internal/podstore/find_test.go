package podstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
)

func TestFind(t *testing.T) {
	s := podstore.New()
	for _, v := range []podstore.View{
		static("u1", "default", "web"), static("u2", "kube-system", "proxy"), static("u3", "default", "web-n"),
	} {
		s.Put(v)
	}
	tests := map[string]struct{ want, err string }{
		"u1":                  {want: "u1"},
		"web-n":               {want: "u1"}, // the full name of u1 counts before the manifest's of u3
		"default/web-n":       {want: "u1"},
		"web":                 {want: "u1"},
		"default/web":         {want: "u1"},
		"web-n-n":             {want: "u3"},
		"kube-system/proxy":   {want: "u2"},
		"kube-system/proxy-n": {want: "u2"},
		"proxy":               {err: `pod "proxy" is not known here: use NAMESPACE/NAME, NAME (namespace default) or a UID; ` + "`flowlet get pods` lists them"},
		"default/":            {err: "is not known here"},
		"":                    {err: "is not known here"},
		"a/b/c":               {err: "is not known here"},
	}
	for ref, tt := range tests {
		t.Run(ref, func(t *testing.T) {
			v, err := s.Find(ref)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, pod.Key(tt.want), v.Key)
		})
	}
}

func TestFindTwoOfOneName(t *testing.T) {
	s := podstore.New()
	s.Put(static("u1", "default", "web"))
	s.Put(static("u2", "default", "web"))
	_, err := s.Find("web")
	require.EqualError(t, err, `pod "web" is ambiguous, name one by its UID: default/web-n (UID u1, pending), default/web-n (UID u2, pending)`)

	s.Put(after(static("u1", "default", "web"), pod.SpecGone{Source: pod.SourceFile, At: time.Unix(300, 0)}))
	v, err := s.Find("web")
	require.NoError(t, err)
	require.Equal(t, pod.Key("u2"), v.Key, "the one that is wanted is meant")
	v, err = s.Find("u1")
	require.NoError(t, err, "the old one can still be named")
	require.Equal(t, pod.Key("u1"), v.Key)
}

func TestNamed(t *testing.T) {
	s := podstore.New()
	s.Put(static("u1", "default", "web"))
	named := func(namespace, name string, uid types.UID) string {
		v, ok := s.Named(namespace, name, uid)
		require.Equal(t, ok, v.State != nil)
		return string(v.Key)
	}
	require.Equal(t, "u1", named("default", "web-n", ""))
	require.Equal(t, "u1", named("default", "web-n", "u1"))
	require.Empty(t, named("default", "web-n", "u2"))
	require.Empty(t, named("default", "web", ""), "only the pod's own name")
	require.Empty(t, named("other", "web-n", ""))

	s.Put(after(static("u1", "default", "web"), pod.SpecGone{Source: pod.SourceFile, At: time.Unix(300, 0)}))
	require.Equal(t, "u1", named("default", "web-n", ""), "there is no other")
	s.Put(static("u2", "default", "web"))
	require.Equal(t, "u2", named("default", "web-n", ""), "the one that is wanted")
	require.Equal(t, "u1", named("default", "web-n", "u1"))
}
