package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

func TestNamedPorts(t *testing.T) {
	p := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Ports: []v1.ContainerPort{{Name: "side", ContainerPort: 90}}}},
		Containers:     []v1.Container{{Ports: []v1.ContainerPort{{ContainerPort: 1}, {Name: "web", ContainerPort: 80}}}},
	}}
	got, err := numbered(p, []string{"web", "8080:web", ":side", "80", "8080:80", ":80", "8080:"})
	require.NoError(t, err)
	require.Equal(t, []string{"80", "8080:80", ":90", "80", "8080:80", ":80", "8080:"}, got)
	_, err = numbered(p, []string{"8080:nope"})
	require.ErrorContains(t, err, `port "8080:nope": no container of pod / has a port of that name; it has ["side" "web"]`)
}
