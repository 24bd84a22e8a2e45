package manifest

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// handler is the union of what probes and hooks can do.
type handler struct {
	exec  *v1.ExecAction
	http  *v1.HTTPGetAction
	tcp   *v1.TCPSocketAction
	grpc  *v1.GRPCAction
	sleep *v1.SleepAction
}

func (v *validator) lifecycle(l *v1.Lifecycle, at *field.Path) {
	if l == nil {
		return
	}
	for child, h := range map[string]*v1.LifecycleHandler{"postStart": l.PostStart, "preStop": l.PreStop} {
		if h != nil {
			v.handler(handler{exec: h.Exec, http: h.HTTPGet, tcp: h.TCPSocket, sleep: h.Sleep}, at.Child(child))
		}
	}
	v.stopSignal(l.StopSignal, at.Child("stopSignal"))
}

func (v *validator) probe(p *v1.Probe, at *field.Path) {
	if p == nil {
		return
	}
	v.handler(handler{exec: p.Exec, http: p.HTTPGet, tcp: p.TCPSocket, grpc: p.GRPC}, at)
	v.notNegative(at.Child("initialDelaySeconds"), int64(p.InitialDelaySeconds))
	v.notNegative(at.Child("timeoutSeconds"), int64(p.TimeoutSeconds))
	v.notNegative(at.Child("periodSeconds"), int64(p.PeriodSeconds))
	v.notNegative(at.Child("successThreshold"), int64(p.SuccessThreshold))
	v.notNegative(at.Child("failureThreshold"), int64(p.FailureThreshold))
	if grace := p.TerminationGracePeriodSeconds; grace != nil && *grace <= 0 {
		v.invalid(at.Child("terminationGracePeriodSeconds"), *grace, "must be greater than 0")
	}
}

// handler checks the first action that is set; there may be no second one.
func (v *validator) handler(h handler, at *field.Path) {
	actions := []struct {
		set   bool
		child string
		check func(at *field.Path)
	}{
		{h.exec != nil, "exec", func(at *field.Path) {
			v.require(len(h.exec.Command) > 0, at.Child("command"), "")
		}},
		{h.http != nil, "httpGet", func(at *field.Path) { v.httpGet(h.http, at) }},
		{h.tcp != nil, "tcpSocket", func(at *field.Path) { v.portNumberOrName(h.tcp.Port, at.Child("port")) }},
		{h.grpc != nil, "grpc", func(at *field.Path) {
			v.invalid(at.Child("port"), h.grpc.Port, validation.IsValidPortNum(int(h.grpc.Port))...)
			oneOfSet(v, at.Child("mode"), h.grpc.Mode, v1.GRPCProbeModePlaintext, v1.GRPCProbeModeTLS)
		}},
		{h.sleep != nil, "sleep", func(at *field.Path) { v.sleep(h.sleep, at) }},
	}
	found := false
	for _, action := range actions {
		switch {
		case !action.set:
		case found:
			v.add(field.Forbidden(at.Child(action.child), "may not specify more than 1 handler type"))
		default:
			found = true
			action.check(at.Child(action.child))
		}
	}
	v.require(found, at, "must specify a handler type")
}

func (v *validator) httpGet(get *v1.HTTPGetAction, at *field.Path) {
	v.require(get.Path != "", at.Child("path"), "")
	v.portNumberOrName(get.Port, at.Child("port"))
	schemes := []v1.URIScheme{v1.URISchemeHTTP, v1.URISchemeHTTPS}
	if !slices.Contains(schemes, get.Scheme) {
		v.add(field.NotSupported(at.Child("scheme"), get.Scheme, schemes))
	}
	oneOfSet(v, at.Child("protocol"), get.Protocol, v1.HTTPProtocolHTTP1, v1.HTTPProtocolHTTP2)
	if get.Protocol != nil && *get.Protocol == v1.HTTPProtocolHTTP2 {
		switch {
		case get.Scheme != v1.URISchemeHTTP:
			v.invalid(at.Child("protocol"), *get.Protocol, "is only supported with HTTP (H2C)")
		case get.Host != "":
			v.invalid(at.Child("host"), get.Host, "must be empty when `protocol` is \"HTTP2\"")
		}
	}
	for _, header := range get.HTTPHeaders {
		v.invalid(at.Child("httpHeaders"), header.Name, validation.IsHTTPHeaderName(header.Name)...)
	}
}

func (v *validator) portNumberOrName(port intstr.IntOrString, at *field.Path) {
	if port.Type == intstr.Int {
		v.invalid(at, port.IntValue(), validation.IsValidPortNum(port.IntValue())...)
		return
	}
	v.invalid(at, port.StrVal, validation.IsValidPortName(port.StrVal)...)
}

func (v *validator) sleep(s *v1.SleepAction, at *field.Path) {
	grace := v.spec.TerminationGracePeriodSeconds
	if grace != nil && (s.Seconds < 0 || s.Seconds > *grace) {
		v.invalid(at, s.Seconds, fmt.Sprintf("must be non-negative and not above terminationGracePeriodSeconds (%d)", *grace))
	}
}
