package scenarios_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/cri/crisim"
)

// chaos does things to a node at random. What is wanted is known at any time;
// when it is over and some time has passed, that is what there is.
type chaos struct {
	*node
	r    *rand.Rand
	want map[string]int // by name: the version that the manifest has
}

// Days are played by SCENARIO_DAYS and SCENARIO_SEED.
func TestRandomDays(t *testing.T) {
	days, first := number("SCENARIO_DAYS", 40), number("SCENARIO_SEED", 1)
	for seed := first; seed < first+days; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := busySetup()
			s.sim.Seed = uint64(seed)
			s.skipEvents = seed%4 == 0
			if seed%5 == 0 {
				s.sim = crisim.Containerd16(s.sim)
			}
			if seed%3 == 0 {
				s.sim.Slots = 2
			}
			s.volumes = &volumes{takes: map[string]time.Duration{"v": 100 * time.Millisecond}}
			scenario(t, s, func(n *node) {
				c := &chaos{node: n, r: rand.New(rand.NewPCG(uint64(seed), 0)), want: map[string]int{}}
				c.day()
			})
		})
	}
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

func (c *chaos) day() {
	for range 40 {
		what := c.something()
		c.story = append(c.story, fmt.Sprint(c.at(time.Now()), " ", what))
		c.settle()
		pauses := []time.Duration{0, 30 * time.Millisecond, 200 * time.Millisecond, time.Second, 5 * time.Second, 40 * time.Second}
		c.pass(time.Duration(c.r.Int64N(int64(pauses[c.r.IntN(len(pauses))]) + 1)))
	}
	c.sim.ClearFaults()
	c.sim.SetEventFaults(crisim.EventFaults{})
	c.sim.SetNetwork(true)
	c.sim.Up()
	if c.agent == nil {
		c.start()
	}
	c.pass(15 * time.Minute)
	c.check()
}

func (c *chaos) something() string {
	names := []string{"a", "b", "c"}
	name := names[c.r.IntN(len(names))]
	switch c.r.IntN(16) {
	case 0, 1, 2, 3:
		c.want[name]++
		c.disk.write(name+".yaml", c.version(name))
		return fmt.Sprint("write ", name, " ", c.want[name])
	case 4:
		if c.want[name]%100 == 0 {
			return "nothing"
		}
		c.disk.remove(name + ".yaml")
		c.want[name] += 100 - c.want[name]%100
		return "remove " + name
	case 5, 6:
		if c.agent == nil {
			c.start()
			return "start"
		}
		c.kill()
		return "kill"
	case 7:
		c.sim.Restart()
		return "the runtime restarts"
	case 8:
		c.sim.Down()
		return "the runtime is down"
	case 9, 10:
		c.sim.Up()
		return "the runtime is up"
	case 11:
		return c.harm()
	case 12:
		c.sim.SetEventFaults(crisim.EventFaults{Shuffle: time.Duration(c.r.IntN(3)) * time.Second, Repeat: c.r.IntN(2), Drop: c.r.IntN(4) == 0})
		return "events are garbled"
	default:
		return c.fault()
	}
}

// version writes the manifest of a pod as it is now. Pod b has a fixed UID, and
// of pod c all containers start anew, twice.
func (c *chaos) version(name string) string {
	v := strconv.Itoa(c.want[name])
	parts := []part{
		grace(3), emptyDir("v"), sidecar("log"), initContainer("i"),
		container("a", "app:1", args(v), mount("v")), container("b", "app:"+v, args(v)),
		does(`{"i":{"exit":{"after":"300ms"}},"b":{"term":{"ignore":true}}}`),
	}
	switch name {
	case "b":
		parts = append(parts, uid("u-b"))
	case "c":
		gang := func(p *v1.Pod) {
			c, always := &p.Spec.Containers[1], v1.ContainerRestartPolicyAlways
			onExit(42, v1.ContainerRestartRuleActionRestartAllContainers)(c)
			c.RestartPolicy = &always // what else ends it is no end
		}
		parts = append(parts, gang,
			does(`{"i":{"exit":{"after":"300ms"}},"b":[{"exit":{"after":"20s","code":42}},{"exit":{"code":42}},{"term":{"ignore":true}}]}`))
	}
	return manifest(name, parts...)
}

func (c *chaos) harm() string {
	all := c.sim.Containers()
	if len(all) == 0 {
		return "nothing"
	}
	one := all[c.r.IntN(len(all))]
	switch c.r.IntN(4) {
	case 0:
		c.sim.Forget(one.Status.GetId())
		return "forget container " + fullName(one)
	case 1:
		_ = c.sim.KillSandbox(one.SandboxID)
		return "kill sandbox of " + fullName(one)
	case 2:
		c.sim.Reboot()
		return "reboot, with the agent alive"
	}
	_ = c.sim.Kill(one.Status.GetId(), crisim.Exit{Code: 1})
	return "kill " + fullName(one)
}

func (c *chaos) fault() string {
	methods := append(writeMethods(), "ListPodSandbox", "StreamPodSandboxes", "StreamContainers", "ContainerStatus", "PodSandboxStatus", "ImageStatus")
	ways := []crisim.Action{
		crisim.Fail(codes.Unknown, "wrong"), crisim.FailAfter(codes.Unknown, "wrong"), crisim.Hang(), crisim.LoseReply(),
		crisim.Late(time.Duration(c.r.IntN(200)) * time.Second), crisim.Slow(10 * time.Second), crisim.SlowReply(10 * time.Second),
	}
	f := crisim.Fault{Method: methods[c.r.IntN(len(methods))], Skip: c.r.IntN(3), Count: 1 + c.r.IntN(2)}
	way := c.r.IntN(len(ways))
	f.Do = ways[way]
	c.sim.Inject(f)
	return fmt.Sprint("fault ", f.Method, " ", []string{"fails", "fails but did", "hangs", "loses reply", "late", "slow", "slow reply"}[way])
}

func (c *chaos) check() {
	wanted := 0
	for _, name := range []string{"a", "b", "c"} {
		if c.want[name]%100 == 0 {
			continue
		}
		wanted++
		v := strconv.Itoa(c.want[name])
		if !c.runs(name, "log", "a", "b") || c.phase(name) != v1.PodRunning {
			c.dump()
			require.Failf(c, "not as wanted", "pod %s does not run: %s", name, c.phase(name))
		}
		b, _ := c.find(name, "b")
		require.Equal(c, "app:"+v, b.Config.GetImage().GetUserSpecifiedImage(), "pod %s", name)
	}
	if len(c.sim.Sandboxes()) < wanted || len(c.agent.Store.All()) != wanted || len(c.stateFiles()) != wanted {
		c.dump()
	}
	ready := 0
	for _, sb := range c.sim.Sandboxes() {
		if sb.Status.GetState() == 0 {
			ready++
		}
	}
	require.Equal(c, wanted, ready)
	require.Len(c, c.agent.Store.All(), wanted)
	require.Len(c, c.stateFiles(), wanted)
	writes, runs := c.count("", writeMethods()...), c.moves.total()
	c.pass(2 * time.Minute)
	require.Equal(c, writes, c.count("", writeMethods()...), "all is done")
	require.Equal(c, runs, c.moves.total(), "all is done: %v", c.moves.list())
}
