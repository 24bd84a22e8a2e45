package admit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/admit"
)

func list(pairs ...string) v1.ResourceList {
	l := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func node() admit.Config {
	return admit.Config{
		Allocatable: list("cpu", "4", "memory", "8Gi", "pods", "3", "ephemeral-storage", "10Gi"),
		Labels:      map[string]string{"region": "r0"}, NodeName: "n1", Sysctls: append(admit.SafeSysctlsOf("5.10.0"), "kernel.msg*"),
	}
}

func state(name string, changes ...func(*v1.Pod)) *pod.State {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name)}}
	p.Spec.Containers = []v1.Container{{Name: "web"}}
	for _, c := range changes {
		c(p)
	}
	s, _ := pod.Fold(nil, pod.SpecSet{Spec: &pod.Spec{Pod: p, Seen: time.Unix(1, 0)}})
	return s
}

func TestStrictGroupsAreNotDecidedAboutBeforeTheRuntimeHasTold(t *testing.T) {
	strict := v1.SupplementalGroupsPolicyStrict
	s := state("a", func(p *v1.Pod) { p.Spec.SecurityContext = &v1.PodSecurityContext{SupplementalGroupsPolicy: &strict} })
	var yes, known bool
	c := node()
	c.StrictGroups = func() (bool, bool) { return yes, known }
	l := admit.NewLedger(c)
	_, err := l.Admit(t.Context(), s)
	require.ErrorContains(t, err, "has not told yet")
	known = true
	facts, err := l.Admit(t.Context(), s)
	require.NoError(t, err)
	require.IsType(t, pod.Rejected{}, facts[0])
	yes = true
	facts, err = l.Admit(t.Context(), s)
	require.NoError(t, err)
	require.IsType(t, pod.Admitted{}, facts[0])
}

func requests(pairs ...string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Containers[0].Resources.Requests = list(pairs...) }
}

func hostPort(number int32, ip string, protocol v1.Protocol) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: number, HostIP: ip, Protocol: protocol}}
	}
}

func sysctls(names ...string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.SecurityContext = &v1.PodSecurityContext{}
		for _, n := range names {
			p.Spec.SecurityContext.Sysctls = append(p.Spec.SecurityContext.Sysctls, v1.Sysctl{Name: n})
		}
	}
}

// verdict is what Admit says, in one line.
func verdict(l *admit.Ledger, s *pod.State) string {
	facts, err := l.Admit(context.Background(), s)
	if err != nil {
		return err.Error()
	}
	switch f := facts[0].(type) {
	case pod.Admitted:
		return "admitted"
	case pod.Rejected:
		return f.Reason + ": " + f.Message
	}
	return "?"
}

// affinity makes a pod require a node that one of the terms fits.
func affinity(terms ...v1.NodeSelectorTerm) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
}

func TestVerdicts(t *testing.T) {
	strict := v1.SupplementalGroupsPolicyStrict
	for name, tc := range map[string]struct {
		before []*pod.State
		s      *pod.State
		want   string
	}{
		"fits": {nil, state("a", requests("cpu", "4", "memory", "8Gi")), "admitted"},
		"cpu": {
			[]*pod.State{state("b", requests("cpu", "1500m"))},
			state("a", requests("cpu", "3")),
			"OutOfcpu: Node didn't have enough resource: cpu, requested: 3000, used: 1500, capacity: 4000",
		},
		"memory": {nil, state("a", requests("memory", "9Gi")), "OutOfmemory: Node didn't have enough resource: memory, requested: 9663676416, used: 0, capacity: 8589934592"},
		"pods": {
			[]*pod.State{state("b"), state("c"), state("d")},
			state("a"),
			"OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
		},
		"hugepages that the node lacks":         {nil, state("a", requests("hugepages-2Mi", "2Mi")), "OutOfhugepages-2Mi: Node didn't have enough resource: hugepages-2Mi, requested: 2097152, used: 0, capacity: 0"},
		"extended resource that the node lacks": {nil, state("a", requests("example.com/gpu", "1")), "admitted"},
		"no request on a full node": {
			[]*pod.State{state("b", requests("cpu", "4"))}, state("a"), "admitted",
		},
		"port taken": {
			[]*pod.State{state("b", hostPort(80, "", ""))},
			state("a", hostPort(80, "10.0.0.1", "TCP")),
			"NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
		},
		"port of another address":  {[]*pod.State{state("b", hostPort(80, "10.0.0.2", ""))}, state("a", hostPort(80, "10.0.0.1", "")), "admitted"},
		"port of another protocol": {[]*pod.State{state("b", hostPort(80, "", "UDP"))}, state("a", hostPort(80, "", "")), "admitted"},
		"selector": {
			nil, state("a", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"region": "r1"} }),
			"NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
		},
		"affinity": {
			nil, state("a", affinity(v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "region", Operator: v1.NodeSelectorOpNotIn, Values: []string{"r0"}}}})),
			"NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
		},
		"affinity to the name of this node": {
			nil, state("a", affinity(v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{"n1"}}}})), "admitted",
		},
		"one of two terms is enough": {
			nil, state("a", affinity(
				v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "region", Operator: v1.NodeSelectorOpIn, Values: []string{"r1"}}}},
				v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "region", Operator: v1.NodeSelectorOpExists}}})), "admitted",
		},
		"what is only preferred": {
			nil, state("a", func(p *v1.Pod) {
				p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{
					Weight: 1, Preference: v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "gpu", Operator: v1.NodeSelectorOpExists}}},
				}}}}
			}), "admitted",
		},
		"selector of this node": {nil, state("a", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"region": "r0"} }), "admitted"},
		"node name":             {nil, state("a", func(p *v1.Pod) { p.Spec.NodeName = "n2" }), "NodeName: Predicate NodeName failed: node(s) didn't match the requested node name"},
		"os":                    {nil, state("a", func(p *v1.Pod) { p.Spec.OS = &v1.PodOS{Name: v1.Windows} }), "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS"},
		"os label": {
			nil, state("a", func(p *v1.Pod) { p.Labels = map[string]string{"kubernetes.io/os": "windows"} }),
			"PodOSSelectorNodeLabelDoesNotMatch: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
		},
		"strict groups": {
			nil, state("a", func(p *v1.Pod) { p.Spec.SecurityContext = &v1.PodSecurityContext{SupplementalGroupsPolicy: &strict} }),
			"SupplementalGroupsPolicyNotSupported: SupplementalGroupsPolicy=Strict is not supported in this node",
		},
		"apparmor": {
			nil, state("a", func(p *v1.Pod) {
				p.Spec.Containers[0].SecurityContext = &v1.SecurityContext{AppArmorProfile: &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeLocalhost}}
			}), "AppArmor: Cannot enforce AppArmor: AppArmor is not enabled on the host",
		},
		"safe sysctl":            {nil, state("a", sysctls("net/ipv4/tcp_syncookies", "kernel.msgmax")), "admitted"},
		"unsafe sysctl":          {nil, state("a", sysctls("kernel.sem")), `SysctlForbidden: forbidden sysctl: "kernel.sem" not allowlisted`},
		"net sysctl of the host": {nil, state("a", sysctls("net.ipv4.tcp_syncookies"), func(p *v1.Pod) { p.Spec.HostNetwork = true }), `SysctlForbidden: forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host net enabled`},
		"ipc sysctl of the host": {nil, state("a", sysctls("kernel.msgmax"), func(p *v1.Pod) { p.Spec.HostIPC = true }), `SysctlForbidden: forbidden sysctl: "kernel.msgmax" not allowed with host ipc enabled`},
	} {
		t.Run(name, func(t *testing.T) {
			l := admit.NewLedger(node())
			for _, b := range tc.before {
				require.Equal(t, "admitted", verdict(l, b))
			}
			require.Equal(t, tc.want, verdict(l, tc.s))
		})
	}
}

// A pod that fits once ending pods are gone is held, not rejected (BC-19).
func TestRoomOfEndingPodsIsWaitedFor(t *testing.T) {
	for name, both := range map[string]func(*v1.Pod){
		"cpu":   requests("cpu", "4"),
		"ports": hostPort(80, "", ""),
		"both":  func(p *v1.Pod) { requests("cpu", "4")(p); hostPort(80, "", "")(p) },
	} {
		t.Run(name, func(t *testing.T) {
			l := admit.NewLedger(node())
			old, next := state("old", both), state("next", both)
			require.Equal(t, "admitted", verdict(l, old))
			ok, waiting := l.Room(next)
			require.True(t, ok, "it would be rejected")
			require.Empty(t, waiting)

			l.Ending(old)
			ok, waiting = l.Room(next)
			require.False(t, ok)
			require.Equal(t, []string{"ns/old"}, waiting)
			_, err := l.Admit(t.Context(), next)
			var noRoom *admit.NoRoomError
			require.True(t, errors.As(err, &noRoom))

			require.True(t, l.Release(old))
			require.False(t, l.Release(old))
			ok, _ = l.Room(next)
			require.True(t, ok)
			require.Equal(t, "admitted", verdict(l, next))
		})
	}
}

func TestWhatNeverFitsIsNotHeld(t *testing.T) {
	l := admit.NewLedger(node())
	old := state("old", requests("cpu", "2"))
	verdict(l, old)
	l.Ending(old)
	require.Contains(t, verdict(l, state("big", requests("cpu", "5"))), "OutOfcpu")
	require.Contains(t, verdict(l, state("elsewhere", requests("cpu", "3"), func(p *v1.Pod) { p.Spec.NodeName = "n2" })), "NodeName")
}

func TestRunningPodsAreReservedWithoutALook(t *testing.T) {
	l := admit.NewLedger(node())
	l.Reserve(state("a", requests("cpu", "3"), func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"region": "rx"} }))
	l.Reserve(state("b", requests("cpu", "3")))
	l.Reserve(state("b", requests("cpu", "3")))
	require.Equal(t, "OutOfcpu: Node didn't have enough resource: cpu, requested: 1, used: 6000, capacity: 4000", verdict(l, state("c", requests("cpu", "1m"))))
	require.Equal(t, "admitted", verdict(l, state("a", requests("cpu", "3"))), "it has its room")
}

func TestAnOldLifeDoesNotFreeTheRoomOfTheNewOne(t *testing.T) {
	l := admit.NewLedger(node())
	old := state("a", requests("cpu", "4"))
	verdict(l, old)
	again := *state("a", requests("cpu", "3"))
	again.Incarnation++
	require.Equal(t, "OutOfcpu: Node didn't have enough resource: cpu, requested: 3000, used: 4000, capacity: 4000", verdict(l, &again),
		"both lives would be there at once")
	require.True(t, l.Release(old))
	require.Equal(t, "admitted", verdict(l, &again))
	l.Ending(old)
	require.False(t, l.Release(old))
	require.Contains(t, verdict(l, state("b", requests("cpu", "2"))), "OutOfcpu")
}

func TestANewLifeTakesThePlaceOfTheOldOne(t *testing.T) {
	l := admit.NewLedger(node())
	verdict(l, state("a", requests("cpu", "1")))
	again := *state("a", requests("cpu", "2"))
	again.Incarnation++
	require.Equal(t, "admitted", verdict(l, &again))
	require.Contains(t, verdict(l, state("b", requests("cpu", "3"))), "used: 2000")
	require.True(t, l.Release(&again))
	require.Equal(t, "admitted", verdict(l, state("b", requests("cpu", "4"))))
}

func TestLabelsMayChangeUnderRunningPods(t *testing.T) { // BC-17
	l := admit.NewLedger(node())
	here := func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"region": "r0"} }
	old := state("old", here)
	require.Equal(t, "admitted", verdict(l, old))
	c := node()
	c.Labels = map[string]string{"region": "rx"}
	l.Configure(c)
	require.Equal(t, "admitted", verdict(l, old))
	require.Contains(t, verdict(l, state("new", here)), "NodeAffinity")
}

// The sums that the ledger keeps are those of its entries, whatever happened.
func TestSumsFollowTheEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := node()
		c.Allocatable = list("cpu", "10", "memory", "8Gi")
		l := admit.NewLedger(c)
		type have struct {
			s      *pod.State
			cpu    int
			ending bool
		}
		in := map[string]have{}
		total := func(ending bool) (sum int) {
			for _, h := range in {
				if h.ending || !ending {
					sum += h.cpu
				}
			}
			return sum
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "pod")
			h, known := in[name]
			switch rapid.SampledFrom([]string{"admit", "reserve", "end", "release"}).Draw(t, "do") {
			case "admit":
				cpu := rapid.IntRange(1, 6).Draw(t, "cpu")
				s := state(name, requests("cpu", fmt.Sprint(cpu)))
				got := verdict(l, s)
				want := "admitted"
				if !known && total(false)+cpu > 10 {
					if want = "no room"; total(false)-total(true)+cpu > 10 {
						want = "OutOfcpu"
					}
				}
				if len(got) < len(want) || got[:len(want)] != want {
					t.Fatalf("%s with %d cpu beside %d (%d ending): %q, want %q", name, cpu, total(false), total(true), got, want)
				}
				if !known && want == "admitted" {
					in[name] = have{s: s, cpu: cpu}
				}
			case "reserve":
				cpu := rapid.IntRange(1, 6).Draw(t, "cpu")
				s := state(name, requests("cpu", fmt.Sprint(cpu)))
				l.Reserve(s)
				in[name] = have{s, cpu, h.ending}
			case "end":
				if known {
					l.Ending(h.s)
					h.ending = true
					in[name] = h
				}
			case "release":
				if known && !l.Release(h.s) {
					t.Fatalf("%s had no room", name)
				}
				delete(in, name)
			}
		}
	})
}

func TestNothingIsGivenTwiceAtOnce(t *testing.T) {
	l := admit.NewLedger(admit.Config{Allocatable: list("cpu", "10")})
	var wg sync.WaitGroup
	var mu sync.Mutex
	admitted := 0
	for i := range 100 {
		wg.Go(func() {
			s := state(fmt.Sprint(i), requests("cpu", "1"))
			l.Room(s)
			if verdict(l, s) == "admitted" {
				mu.Lock()
				admitted++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Equal(t, 10, admitted)
}
