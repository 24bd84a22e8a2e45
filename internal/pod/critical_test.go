package pod_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/flowlet/flowlet/internal/pod"
)

func TestCritical(t *testing.T) {
	p := &v1.Pod{}
	require.False(t, pod.Critical(p))
	p.Annotations = map[string]string{pod.AnnotationSource: pod.SourceAPI}
	require.False(t, pod.Critical(p))
	p.Spec.Priority = ptr.To[int32](1_999_999_999)
	require.False(t, pod.Critical(p))
	p.Spec.Priority = ptr.To[int32](2_000_000_000)
	require.True(t, pod.Critical(p))
	p = &v1.Pod{}
	p.Annotations = map[string]string{pod.AnnotationSource: pod.SourceFile}
	require.True(t, pod.Critical(p))
}
