package scenarios_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flowlet/flowlet/cri/crisim"
)

func postStart(c *v1.Container) {
	c.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"hello"}}}}
}

// A hook runs at least once, whenever the agent is killed, and no more often
// than there were agents that did not live to see its end.
func TestPostStartRunsOverAgents(t *testing.T) {
	for kill, hooks := range map[time.Duration]int{
		400 * time.Millisecond:  1, // the container is being made
		480 * time.Millisecond:  1, // it is being started
		510 * time.Millisecond:  2, // it runs, and the hook has just begun
		1500 * time.Millisecond: 2, // the hook runs
		2600 * time.Millisecond: 1, // the hook has ended
		time.Minute:             1,
	} {
		t.Run(kill.String(), func(t *testing.T) {
			t.Parallel()
			scenario(t, gangSetup(), func(n *node) {
				n.write("s", manifest("s", container("web", "app:1", postStart), does(`{"web":{"exec":[{"command":"hello","after":"2s"}]}}`)))
				n.pass(kill)
				n.kill()
				n.pass(time.Second)
				n.start()
				n.pass(10 * time.Second)
				n.kill()
				n.start()
				n.pass(10 * time.Second)
				if n.count("s", "ExecSync") != hooks {
					n.dump()
				}
				require.Equal(n, hooks, n.count("s", "ExecSync"))
				require.Equal(n, 1, n.made("s", "web"))
				require.True(n, n.runs("s", "web"))
			})
		})
	}
}

func cpu(request string) func(c *v1.Container) {
	return func(c *v1.Container) {
		c.Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(request)}
	}
}

func TestAPodThatGetsSmallerMakesRoom(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}, served: true}, func(n *node) {
		n.write("ends", manifest("ends", grace(600), container("web", "app:1", cpu("2")), does(`{"web":{"term":{"ignore":true}}}`)))
		n.apply(manifest("big", container("web", "app:1", cpu("2"))))
		n.untilRuns(3*time.Second, "ends", "web")
		n.untilRuns(3*time.Second, "big", "web")
		n.remove("ends")
		n.write("new", manifest("new", container("web", "app:1", cpu("1"))))
		n.pass(5 * time.Second)
		require.False(n, n.runs("new", "web"), "there is no room yet")
		n.apply(manifest("big", container("web", "app:1", cpu("1"))))
		n.untilRuns(3*time.Second, "new", "web")
	})
}

func TestPodsKeepTheirRoomWhileNobodyTellsTheirSpecs(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}, served: true}, func(n *node) {
		port := func(c *v1.Container) { c.Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 80}} }
		n.apply(manifest("big", container("web", "app:1", cpu("3"), port)))
		n.untilRuns(3*time.Second, "big", "web")
		n.pass(2 * time.Second)
		n.kill()
		n.server.away = true
		n.write("much", manifest("much", container("web", "app:1", cpu("2"))))
		n.write("port", manifest("port", container("web", "app:1", port)))
		n.write("fits", manifest("fits", container("web", "app:1", cpu("1"))))
		n.start()
		n.untilRuns(3*time.Second, "fits", "web")
		n.pass(3 * time.Second)
		for name, reason := range map[string]string{"much": "OutOfcpu", "port": "NodePorts"} {
			phase, why, _ := n.judgement(name)
			require.Equal(n, v1.PodFailed, phase, name)
			require.Equal(n, reason, why)
		}
		require.True(n, n.runs("big", "web"))
	})
}

func TestAddressOfAFinishedJobOutlivesTheAgent(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", restart(v1.RestartPolicyNever), does(`{"web":{"exit":{"after":"2s"}}}`)))
		n.until(10*time.Second, "it is done", func() bool { return n.phase("s") == v1.PodSucceeded })
		n.pass(time.Second)
		v, _ := n.view("s")
		require.NotEmpty(n, v.Status.PodIP)
		n.kill()
		n.start()
		n.pass(5 * time.Second)
		again, _ := n.view("s")
		require.Equal(n, v.Status.PodIPs, again.Status.PodIPs)
	})
}
