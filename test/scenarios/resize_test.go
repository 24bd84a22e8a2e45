package scenarios_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flowlet/flowlet/cri/crisim"
)

// needs makes a container request that much CPU and memory, and may have twice
// of it.
func needs(cpu, memory string, policy ...v1.ContainerResizePolicy) func(c *v1.Container) {
	return func(c *v1.Container) {
		c.Resources = v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)},
			Limits:   v1.ResourceList{v1.ResourceMemory: resource.MustParse("32Gi")},
		}
		c.ResizePolicy = policy
	}
}

// resized is a static pod that keeps its UID when its manifest changes.
func resized(name string, change func(c *v1.Container)) string {
	return manifest(name, uid("u-"+name), container("web", "app:1", change))
}

// condition returns the reason of a condition of a pod; "-" when it has no such.
func (n *node) condition(name string, kind v1.PodConditionType) string {
	v, _ := n.view(name)
	if v.Status == nil {
		return "-"
	}
	for i := range v.Status.Conditions {
		if c := &v.Status.Conditions[i]; c.Type == kind {
			return c.Reason
		}
	}
	return "-"
}

func (n *node) shares(name string) int64 {
	c, _ := n.find(name, "web")
	return c.Status.GetResources().GetLinux().GetCpuShares()
}

func (n *node) told(name string) (reasons []string) {
	v, _ := n.view(name)
	for _, ev := range n.agent.Events.Of(v.State.UID()) {
		if len(ev.Reason) > 6 && ev.Reason[:6] == "Resize" {
			reasons = append(reasons, ev.Reason)
		}
	}
	return reasons
}

func resizeSetup() setup { return setup{sim: crisim.Config{Images: here1}} }

func TestPodIsResizedInPlace(t *testing.T) {
	scenario(t, resizeSetup(), func(n *node) {
		n.write("a", resized("a", needs("1", "1Gi")))
		n.untilRuns(5*time.Second, "a", "web")
		was, _ := n.find("a", "web")
		require.EqualValues(n, 1024, n.shares("a"))

		n.write("a", resized("a", needs("2", "1Gi")))
		n.until(5*time.Second, "it has two CPUs", func() bool { return n.shares("a") == 2048 })
		n.until(time.Second, "it is told", func() bool { return n.condition("a", v1.PodResizeInProgress) == "-" })
		is, _ := n.find("a", "web")
		require.Equal(n, was.Status.GetId(), is.Status.GetId(), "the container runs on")
		require.Len(n, n.calls("a", "UpdateContainerResources"), 1)
		require.Len(n, n.calls("a", "UpdatePodSandboxResources"), 1)
		v, _ := n.view("a")
		st := v.Status.ContainerStatuses[0]
		require.Equal(n, "2", st.AllocatedResources.Cpu().String())
		require.Equal(n, "2", st.Resources.Requests.Cpu().String())
		require.Equal(n, []string{"ResizeStarted", "ResizeCompleted"}, n.told("a"))

		n.pass(10 * time.Second) // until it is in the state file
		n.kill()
		n.start()
		n.pass(time.Minute)
		require.Len(n, n.calls("a", "UpdateContainerResources"), 1, "not again")
		require.Len(n, n.calls("a", "CreateContainer"), 1)
	})
}

func TestResizeThatDoesNotFitWaitsForRoom(t *testing.T) {
	scenario(t, resizeSetup(), func(n *node) {
		n.write("a", resized("a", needs("1", "1Gi")))
		n.write("b", resized("b", needs("2", "1Gi")))
		n.untilRuns(5*time.Second, "a", "web")
		n.untilRuns(5*time.Second, "b", "web")

		n.write("a", resized("a", needs("3", "1Gi")))
		n.pass(time.Minute)
		require.Equal(n, "Deferred", n.condition("a", v1.PodResizePending))
		require.EqualValues(n, 1024, n.shares("a"))
		v, _ := n.view("a")
		require.Equal(n, "1", v.Status.ContainerStatuses[0].AllocatedResources.Cpu().String())

		n.kill()
		n.start()
		n.pass(time.Minute)
		require.Equal(n, "Deferred", n.condition("a", v1.PodResizePending), "what it was given is kept over a restart of the agent")
		require.EqualValues(n, 1024, n.shares("a"))

		n.write("b", resized("b", needs("1", "1Gi")))
		n.until(5*time.Second, "there is room", func() bool { return n.shares("a") == 3072 })
		require.Equal(n, "-", n.condition("a", v1.PodResizePending))
		require.EqualValues(n, 1024, n.shares("b"))

		n.write("a", resized("a", needs("5", "1Gi")))
		n.pass(time.Second)
		require.Equal(n, "Infeasible", n.condition("a", v1.PodResizePending))
		require.Contains(n, n.told("a"), "ResizeInfeasible")
		n.write("a", resized("a", needs("3", "1Gi")))
		n.pass(time.Second)
		require.Equal(n, "-", n.condition("a", v1.PodResizePending), "it is withdrawn")
		require.Len(n, n.calls("a", "CreateContainer"), 1)
	})
}

func TestResizeByRestart(t *testing.T) {
	scenario(t, resizeSetup(), func(n *node) {
		policy := v1.ContainerResizePolicy{ResourceName: v1.ResourceMemory, RestartPolicy: v1.RestartContainer}
		n.write("a", resized("a", needs("1", "1Gi", policy)))
		n.untilRuns(5*time.Second, "a", "web")
		n.write("a", resized("a", needs("2", "1Gi", policy)))
		n.until(5*time.Second, "the CPUs need no restart", func() bool { return n.shares("a") == 2048 })
		require.Len(n, n.calls("a", "CreateContainer"), 1)

		n.write("a", resized("a", needs("2", "2Gi", policy)))
		n.until(time.Minute, "it is started anew", func() bool { return len(n.starts("a", "web")) == 2 })
		n.settle()
		require.Len(n, n.calls("a", "StopContainer"), 1)
		n.pass(time.Second)
		require.Equal(n, "-", n.condition("a", v1.PodResizeInProgress))
		v, _ := n.view("a")
		require.Nil(n, v.State.Resize)
		require.Equal(n, "2Gi", v.Status.ContainerStatuses[0].AllocatedResources.Memory().String())
	})
}

func TestResizeThatFailsGoesOnAndSaysSo(t *testing.T) {
	scenario(t, resizeSetup(), func(n *node) {
		n.write("a", resized("a", needs("1", "1Gi")))
		n.untilRuns(5*time.Second, "a", "web")
		n.sim.Inject(crisim.Fault{Method: "UpdateContainerResources", Count: 2, Do: crisim.Fail(codes.Unknown, "no")})
		n.write("a", resized("a", needs("2", "1Gi")))
		n.until(5*time.Second, "it fails", func() bool { return n.condition("a", v1.PodResizeInProgress) == "Error" })
		require.Contains(n, n.told("a"), "ResizeError")
		n.kill()
		n.start()
		n.until(5*time.Minute, "it is done by the next agent", func() bool { return n.shares("a") == 2048 })
		n.until(5*time.Second, "it is told", func() bool { return n.condition("a", v1.PodResizeInProgress) == "-" })
	})
}

// Whenever the agent is killed, the next one brings the resize to its end, and
// no container is started anew.
func TestResizeSurvivesTheAgent(t *testing.T) {
	s := resizeSetup()
	s.sim.Latency = someLatency()
	for at := time.Duration(0); at <= 120*time.Millisecond; at += 5 * time.Millisecond {
		scenario(t, s, func(n *node) {
			n.write("a", resized("a", needs("1", "1Gi")))
			n.untilRuns(5*time.Second, "a", "web")
			n.pass(10 * time.Second) // until it is in the state file
			n.write("a", resized("a", needs("2", "2Gi")))
			n.pass(at)
			n.kill()
			n.pass(time.Second)
			n.start()
			n.until(time.Minute, "it has what it asks for", func() bool {
				v, ok := n.view("a")
				return ok && n.shares("a") == 2048 && v.State.Resize == nil && v.State.Spec != nil && v.State.Spec.Asked == nil
			})
			v, _ := n.view("a")
			require.Equal(n, "2Gi", v.Status.ContainerStatuses[0].AllocatedResources.Memory().String())
			require.Len(n, n.calls("a", "CreateContainer"), 1)
			require.LessOrEqual(n, n.count("a", "UpdateContainerResources"), 2)
		})
	}
}
