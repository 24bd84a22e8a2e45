package admit

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// amounts are quantities by resource: cpu in thousandths, the rest in units.
type amounts map[v1.ResourceName]int64

func amountsOf(list v1.ResourceList) amounts {
	a := make(amounts, len(list))
	for name, q := range list {
		if name == v1.ResourceCPU {
			a[name] = q.MilliValue()
		} else {
			a[name] = q.Value()
		}
	}
	return a
}

func (a amounts) add(o amounts) {
	for name, n := range o {
		a[name] += n
	}
}

func (a amounts) subtract(o amounts) {
	for name, n := range o {
		if a[name] -= n; a[name] == 0 {
			delete(a, name)
		}
	}
}

func (a amounts) minus(o amounts) amounts {
	out := make(amounts, len(a))
	out.add(a)
	out.subtract(o)
	return out
}

// requestOf returns what a pod takes: its requests and one place for a pod.
func requestOf(r pod.Room) amounts {
	a := amountsOf(r.Requests)
	a[v1.ResourcePods] = 1
	return a
}

// extended reports whether a resource is one that a device plugin announces.
func extended(name v1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), "kubernetes.io/")
}

// port is where conflicts are looked for; the addresses decide.
type port struct {
	protocol v1.Protocol
	number   int32
}

type hostPort struct {
	port
	ip string
}

const anyIP = "0.0.0.0"

// portsOf returns a pod's host ports.
func portsOf(r pod.Room) []hostPort {
	var out []hostPort
	for _, p := range r.Ports {
		hp := hostPort{port{p.Protocol, p.HostPort}, p.HostIP}
		if hp.protocol == "" {
			hp.protocol = v1.ProtocolTCP
		}
		if hp.ip == "" {
			hp.ip = anyIP
		}
		out = append(out, hp)
	}
	return out
}

// holds reports whether e has a port that cannot be had beside want.
func (e *entry) holds(want hostPort) bool {
	for _, have := range e.ports {
		if have.port == want.port && (have.ip == want.ip || have.ip == anyIP || want.ip == anyIP) {
			return true
		}
	}
	return false
}
