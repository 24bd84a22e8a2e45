package server

import (
	"cmp"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flowlet/flowlet/internal/podstore"
)

// Annotations that a pod is shown with.
const (
	AnnotationPhase       = "flowlet.dev/phase"       // where it stands in its life on the node
	AnnotationManifest    = "flowlet.dev/manifest"    // the file that it comes from
	AnnotationUnsupported = "flowlet.dev/unsupported" // paths of fields that have no effect in this build
	AnnotationLeftAlone   = "flowlet.dev/left-alone"  // why nothing is done for it
)

// pod returns a view as an API object: the spec and status, or for a pod
// without a spec what the runtime's labels say. The result is the caller's.
func (a *Agent) pod(v podstore.View) *v1.Pod {
	id := v.State.Identity
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: id.Name, Namespace: id.Namespace, UID: id.UID}}
	spec := v.State.Pod()
	if s := v.State.Spec; s != nil && s.Asked != nil {
		spec = s.Asked // what it was given is in the status
	}
	if spec != nil {
		p = spec.DeepCopy()
	}
	p.APIVersion, p.Kind = "v1", "Pod"
	a.annotate(v, p)
	if v.Status != nil {
		v.Status.DeepCopyInto(&p.Status)
	}
	if r := v.State.Removal; r != nil {
		at := metav1.NewTime(r.Deadline())
		grace := int64(r.Grace / time.Second)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	}
	return p
}

func (a *Agent) annotate(v podstore.View, p *v1.Pod) {
	set := func(name, value string) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, name, value) }
	set(AnnotationPhase, v.State.Phase.String())
	if s := v.State.Spec; s != nil {
		if s.Path != "" {
			set(AnnotationManifest, s.Path)
		}
		if fields := a.Unsupported(s.Pod); len(fields) > 0 {
			set(AnnotationUnsupported, strings.Join(fields, ", "))
		}
	}
	if a.leftAlone(v) {
		set(AnnotationLeftAlone, "source "+cmp.Or(v.State.Source(), "(unknown)")+" is not configured here")
	}
}
