package container

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubectl/pkg/util/fieldpath"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// environment is a container's variables in the order of their first mention.
type environment struct {
	names  []string
	values map[string]string
}

func (e *environment) set(name, value string) {
	if _, ok := e.values[name]; !ok {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

func (e *environment) lookup(name string) (string, bool) {
	v, ok := e.values[name]
	return v, ok
}

func (e *environment) expandAll(texts []string) []string {
	var out []string
	for _, t := range texts {
		out = append(out, crifact.Expand(t, e.lookup))
	}
	return out
}

func (e *environment) list() []*runtimeapi.KeyValue {
	var out []*runtimeapi.KeyValue
	for _, n := range e.names {
		out = append(out, &runtimeapi.KeyValue{Key: n, Value: []byte(e.values[n])})
	}
	return out
}

// environment resolves the variables of a container. A value may use those
// before it; one that comes from somewhere else is taken as it is.
func (c *Containers) environment(st *Start) (*environment, error) {
	e := &environment{values: map[string]string{}}
	for i := range st.Container.EnvFrom {
		if err := absent(envFrom(&st.Container.EnvFrom[i])); err != nil {
			return nil, fmt.Errorf("envFrom[%d]: %w", i, err)
		}
	}
	for i := range st.Container.Env {
		v := &st.Container.Env[i]
		switch {
		case v.ValueFrom == nil:
			e.set(v.Name, crifact.Expand(v.Value, e.lookup))
		default:
			value, ok, err := c.valueFrom(st, v.ValueFrom)
			if err != nil {
				return nil, fmt.Errorf("env %s: %w", v.Name, err)
			}
			if ok {
				e.set(v.Name, value)
			}
		}
	}
	return e, nil
}

// valueFrom returns a value; ok is false where there is none and need not be.
func (c *Containers) valueFrom(st *Start, from *v1.EnvVarSource) (value string, ok bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = c.field(st, from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err = c.resourceField(st, from.ResourceFieldRef)
		return value, true, err
	case from.FileKeyRef != nil:
		return c.fileKey(st.State.Pod(), from.FileKeyRef)
	case from.ConfigMapKeyRef != nil:
		r := from.ConfigMapKeyRef
		return "", false, absent(object{"configmap", r.Name, r.Optional})
	case from.SecretKeyRef != nil:
		r := from.SecretKeyRef
		return "", false, absent(object{"secret", r.Name, r.Optional})
	default:
		return "", false, fmt.Errorf("valueFrom names no source that this release knows")
	}
}

// object is a config map or secret that a container reads.
type object struct {
	kind, name string
	optional   *bool
}

func envFrom(f *v1.EnvFromSource) object {
	switch {
	case f.ConfigMapRef != nil:
		return object{"configmap", f.ConfigMapRef.Name, f.ConfigMapRef.Optional}
	case f.SecretRef != nil:
		return object{"secret", f.SecretRef.Name, f.SecretRef.Optional}
	default:
		return object{kind: "source", name: "unknown"}
	}
}

// absent returns the error for an object that has to be there: without an API
// server there are none.
func absent(o object) error {
	if o.optional != nil && *o.optional {
		return nil
	}
	return fmt.Errorf("%s %q not found: this node runs without an API server, so pods have no config maps and secrets; "+
		"use literal values or mark it optional", o.kind, o.name)
}

// field resolves a field of the pod, of its status where only the node knows.
func (c *Containers) field(st *Start, path string) (string, error) {
	p := st.State.Pod()
	switch path {
	case "spec.nodeName":
		return p.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return p.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return first(c.Settings.NodeIPs), nil
	case "status.hostIPs":
		return strings.Join(c.Settings.NodeIPs, ","), nil
	case "status.podIP":
		return first(c.podIPs(st)), nil
	case "status.podIPs":
		return strings.Join(c.podIPs(st), ","), nil
	}
	value, err := fieldpath.ExtractFieldPathAsString(p, path)
	if err != nil {
		return "", fmt.Errorf("fieldRef %s: %w", path, err)
	}
	return value, nil
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// podIPs returns the addresses of the sandbox that the container starts in.
func (c *Containers) podIPs(st *Start) []string {
	if st.State.Pod().Spec.HostNetwork {
		return c.Settings.NodeIPs
	}
	for _, sb := range st.State.Sandboxes {
		if sb.ID == st.SandboxID {
			return sb.IPs
		}
	}
	return nil
}

// resourceField resolves a request or limit of a container.
func (c *Containers) resourceField(st *Start, ref *v1.ResourceFieldSelector) (string, error) {
	ct := st.Container
	if ref.ContainerName != "" && ref.ContainerName != ct.Name {
		if ct = named(st.State, ref.ContainerName); ct == nil {
			return "", fmt.Errorf("resourceFieldRef: the pod has no container %q", ref.ContainerName)
		}
	}
	return crifact.ResourceField(st.State.Pod(), ct, ref, c.Settings.Allocatable)
}

// named returns a container of the pod's spec, or nil.
func named(s *pod.State, name string) *v1.Container {
	spec := &s.Pod().Spec
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
