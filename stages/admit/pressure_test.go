package admit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/admit"
)

func TestPodsAreKeptFromANodeUnderPressure(t *testing.T) {
	const memory, disk, pids = v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure
	bestEffort := func(*v1.Pod) {}
	burstable := func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Mi")}
	}
	tolerant := func(p *v1.Pod) {
		p.Spec.Tolerations = []v1.Toleration{{Key: v1.TaintNodeMemoryPressure, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule}}
	}
	system := func(p *v1.Pod) { n := int32(2_000_000_000); p.Spec.Priority = &n }
	static := func(p *v1.Pod) { p.Annotations = map[string]string{pod.AnnotationSource: pod.SourceFile} }
	for name, tc := range map[string]struct {
		under []v1.NodeConditionType
		pod   func(*v1.Pod)
		says  string
	}{
		"no pressure":                {nil, bestEffort, ""},
		"memory, best effort":        {[]v1.NodeConditionType{memory}, bestEffort, "The node had condition: [MemoryPressure]. "},
		"memory, asks for some":      {[]v1.NodeConditionType{memory}, burstable, ""},
		"memory, tolerates it":       {[]v1.NodeConditionType{memory}, tolerant, ""},
		"disk, asks for memory":      {[]v1.NodeConditionType{disk}, burstable, "The node had condition: [DiskPressure]. "},
		"disk, toleration of memory": {[]v1.NodeConditionType{disk}, tolerant, "The node had condition: [DiskPressure]. "},
		"memory and disk":            {[]v1.NodeConditionType{disk, memory}, burstable, "The node had condition: [MemoryPressure DiskPressure]. "},
		"processes":                  {[]v1.NodeConditionType{pids}, burstable, "The node had condition: [PIDPressure]. "},
		"of the system":              {[]v1.NodeConditionType{memory, disk, pids}, system, ""},
		"static":                     {[]v1.NodeConditionType{memory, disk, pids}, static, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := admit.NewLedger(admit.Config{
				Allocatable: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")},
				Pressed: func(c v1.NodeConditionType) bool {
					for _, is := range tc.under {
						if is == c {
							return true
						}
					}
					return false
				},
			})
			p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "web"}}}}
			tc.pod(p)
			facts, err := l.Admit(context.Background(), &pod.State{Identity: pod.Identity{UID: "u"}, Spec: &pod.Spec{Pod: p}})
			require.NoError(t, err)
			require.Len(t, facts, 1)
			no, rejected := facts[0].(pod.Rejected)
			require.Equal(t, tc.says != "", rejected)
			require.Equal(t, tc.says, no.Message)
			if rejected {
				require.Equal(t, "Evicted", no.Reason)
			}
		})
	}
}
