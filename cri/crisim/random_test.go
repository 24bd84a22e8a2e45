package crisim_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
)

// Any sequence of calls and mishaps leaves a runtime whose parts agree.
func TestRandomCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		sim := crisim.New(crisim.Config{EventRetention: -1, Images: map[string]crisim.Image{"app:1": {Present: true}}})
		client := cri.New(sim.Direct())
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		anySandbox := func() string {
			all := sim.Sandboxes()
			if len(all) == 0 {
				t.Skip("none")
			}
			return all[rapid.IntRange(0, len(all)-1).Draw(t, "sandbox")].Status.GetId()
		}
		anyContainer := func() string {
			all := sim.Containers()
			if len(all) == 0 {
				t.Skip("none")
			}
			return all[rapid.IntRange(0, len(all)-1).Draw(t, "container")].Status.GetId()
		}
		t.Repeat(map[string]func(*rapid.T){
			"run": func(t *rapid.T) {
				config := pod(name.Draw(t, "pod"), "")
				config.Metadata.Attempt = rapid.Uint32Range(0, 2).Draw(t, "attempt")
				_, _ = client.RunPodSandbox(ctx, config, "")
			},
			"create": func(t *rapid.T) {
				config := pod(name.Draw(t, "pod"), "")
				_, _ = client.CreateContainer(ctx, anySandbox(), &runtimeapi.ContainerConfig{
					Metadata: &runtimeapi.ContainerMetadata{Name: "web", Attempt: rapid.Uint32Range(0, 3).Draw(t, "attempt")},
					Image:    &runtimeapi.ImageSpec{Image: "app:1"}, Labels: config.GetLabels(),
				}, config)
			},
			"start":          func(*rapid.T) { _ = client.StartContainer(ctx, anyContainer()) },
			"stop":           func(*rapid.T) { require.NoError(t, client.StopContainer(ctx, anyContainer(), 1)) },
			"remove":         func(*rapid.T) { require.NoError(t, client.RemoveContainer(ctx, anyContainer())) },
			"stop sandbox":   func(*rapid.T) { require.NoError(t, client.StopPodSandbox(ctx, anySandbox())) },
			"remove sandbox": func(*rapid.T) { require.NoError(t, client.RemovePodSandbox(ctx, anySandbox())) },
			"kill":           func(*rapid.T) { _ = sim.Kill(anyContainer(), crisim.Exit{Code: 1}) },
			"lose track":     func(*rapid.T) { _ = sim.LoseTrack(anyContainer()) },
			"drop addresses": func(*rapid.T) { _ = sim.DropAddresses(anySandbox()) },
			"kill sandbox":   func(*rapid.T) { _ = sim.KillSandbox(anySandbox()) },
			"forget":         func(*rapid.T) { sim.Forget(anyContainer()) },
			"forget sandbox": func(*rapid.T) { sim.Forget(anySandbox()) },
			"reboot":         func(*rapid.T) { sim.Reboot() },
			"lose a reply": func(t *rapid.T) {
				method := rapid.SampledFrom([]string{"RunPodSandbox", "CreateContainer", "StartContainer"}).Draw(t, "method")
				do := rapid.SampledFrom([]crisim.Action{crisim.LoseReply(), crisim.Fail(codes.Internal, "boom")}).Draw(t, "action")
				sim.Inject(crisim.Fault{Method: method, Count: 1, Do: do})
			},
			"": func(*rapid.T) { agree(t, ctx, sim, client) },
		})
	})
}

// agree checks that lists, filters, names and addresses tell the same story.
func agree(t require.TestingT, ctx context.Context, sim *crisim.Runtime, client *cri.Client) {
	sandboxes, containers := sim.Sandboxes(), sim.Containers()
	names := map[string]bool{}
	ready, addresses := map[string]bool{}, 0
	for _, s := range sandboxes {
		m := s.Status.GetMetadata()
		key := fmt.Sprint("sandbox ", m.GetNamespace(), m.GetName(), m.GetUid(), m.GetAttempt())
		require.False(t, names[key], key)
		names[key] = true
		ready[s.Status.GetId()] = s.Status.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY
		if s.Status.GetNetwork().GetIp() != "" {
			addresses++
		}
	}
	require.Equal(t, addresses, sim.AddressesInUse())
	byPod := map[string][]string{}
	for _, c := range containers {
		_, known := ready[c.SandboxID]
		require.True(t, known, "a container has a sandbox")
		uid := c.Config.GetLabels()["io.kubernetes.pod.uid"]
		byPod[uid] = append(byPod[uid], c.Status.GetId())
	}
	for _, uid := range []string{"uid-a", "uid-b", "uid-c"} {
		listed, err := client.ListContainers(ctx, &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"io.kubernetes.pod.uid": uid}})
		require.NoError(t, err)
		var ids []string
		for _, c := range listed {
			ids = append(ids, c.GetId())
		}
		require.True(t, slices.Equal(byPod[uid], ids), "by label %v, all %v", ids, byPod[uid])
	}
	all, err := client.ListContainers(ctx, nil)
	require.NoError(t, err)
	require.Len(t, all, len(containers))
	for i, c := range all {
		require.Equal(t, containers[i].Status.GetState(), c.GetState(), "an item is as new as the status")
		one, ok := sim.Container(c.GetId())
		require.True(t, ok)
		require.Equal(t, containers[i].SandboxID, one.SandboxID)
	}
}

func TestSameSeedSameWorld(t *testing.T) {
	world := func(seed uint64) (ids []string) {
		simulate(t, crisim.Config{Seed: seed}, func(n node) {
			for _, name := range []string{"a", "b"} {
				sandbox, container := n.start(pod(name, ""))
				ids = append(ids, sandbox, container)
			}
		})
		return ids
	}
	require.Equal(t, world(1), world(1))
	require.NotEqual(t, world(1), world(2))
}
