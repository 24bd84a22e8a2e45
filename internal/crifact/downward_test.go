package crifact_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flowlet/flowlet/internal/crifact"
)

func TestResourceFieldShowsTheContainersThenThePodsThenTheNodesLimit(t *testing.T) {
	list := func(cpu, memory string) v1.ResourceList {
		out := v1.ResourceList{}
		if cpu != "" {
			out[v1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			out[v1.ResourceMemory] = resource.MustParse(memory)
		}
		return out
	}
	node := list("8", "16Gi")
	podLevel := &v1.ResourceRequirements{Limits: list("", "4Gi"), Requests: list("2", "")}
	for name, tc := range map[string]struct {
		of, want string
		own      v1.ResourceList
		pod      *v1.ResourceRequirements
	}{
		"container's":             {"limits.memory", "1073741824", list("", "1Gi"), podLevel},
		"0 is none":               {"limits.memory", "4294967296", list("", "0"), podLevel},
		"pod's":                   {"limits.memory", "4294967296", nil, podLevel},
		"pod's, of another thing": {"limits.cpu", "8", nil, podLevel},
		"node's":                  {"limits.memory", "17179869184", nil, nil},
		"unknown to the node":     {"limits.ephemeral-storage", "0", nil, nil},
		"requests have no such":   {"requests.cpu", "0", nil, podLevel},
	} {
		t.Run(name, func(t *testing.T) {
			c := &v1.Container{Resources: v1.ResourceRequirements{Limits: tc.own}}
			got, err := crifact.ResourceField(&v1.Pod{Spec: v1.PodSpec{Resources: tc.pod}}, c, &v1.ResourceFieldSelector{Resource: tc.of}, node)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.own, c.Resources.Limits, "the spec is left alone")
		})
	}
}
