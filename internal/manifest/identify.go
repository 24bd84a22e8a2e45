package manifest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// UIDRecipe is the version of the recipe that makes UIDs of static pods. It
// is part of what is hashed: a new recipe gives new UIDs, so it restarts every
// static pod, and must be chosen on purpose.
const UIDRecipe = 1

// The sources of static pods, as the annotation kubernetes.io/config.source
// names them.
const (
	SourceFile = "file"
	SourceHTTP = "http"
)

// Annotations that every static pod carries; the names are the kubelet's.
const (
	AnnotationHash   = "kubernetes.io/config.hash"
	AnnotationSource = "kubernetes.io/config.source"
	AnnotationSeen   = "kubernetes.io/config.seen"
)

// seenLayout is RFC 3339 with all nine digits of the nanoseconds.
const seenLayout = "2006-01-02T15:04:05.000000000Z07:00"

// Origin is where a static pod comes from.
type Origin struct {
	Source   string    // SourceFile or SourceHTTP
	Location string    // absolute path, or URL; part of the UID
	NodeName string    // part of the UID and of the pod's name
	Seen     time.Time // when the agent first saw this pod
}

// UID is the UID of the manifest's pod: the one that the user gave, or else
// 32 hex digits made of what the user wrote, the node and the place. Key
// order, white space, comments and the choice between YAML and JSON do not
// matter, nor do defaults and the fields that this build knows, so that an
// upgrade keeps the UID.
func (m *Manifest) UID(o Origin) types.UID {
	if m.Pod.UID != "" {
		return m.Pod.UID
	}
	return types.UID(digest("uid", m.canonical, o.NodeName, o.Source, o.Location))
}

// Revision changes exactly when what the user wrote changes. Other than UID
// it also does when the user gave the UID.
func (m *Manifest) Revision() string { return digest("revision", m.canonical) }

// digest hashes its parts, each with its length before it, to 128 bits.
func digest(purpose string, canonical []byte, parts ...string) string {
	h := sha256.New()
	part := func(s string) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:])
		_, _ = io.WriteString(h, s)
	}
	h.Write([]byte{UIDRecipe})
	part(purpose)
	part(string(canonical))
	for _, p := range parts {
		part(p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// PodName is the name of a static pod, which has the node in it because the
// same manifest may stand on many nodes.
func PodName(name, nodeName string) string { return name + "-" + strings.ToLower(nodeName) }

// Identify makes pod, decoded from m and defaulted, the static pod of that
// origin. It drops what only an API server may say about an object.
func (m *Manifest) Identify(pod *v1.Pod, o Origin) {
	pod.TypeMeta = metav1.TypeMeta{}
	pod.ObjectMeta = metav1.ObjectMeta{
		UID:             m.UID(o),
		Name:            PodName(pod.Name, o.NodeName),
		Namespace:       pod.Namespace,
		Labels:          pod.Labels,
		Annotations:     pod.Annotations,
		OwnerReferences: pod.OwnerReferences,
		Finalizers:      pod.Finalizers,
	}
	setIfEmpty(&pod.Namespace, metav1.NamespaceDefault)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[AnnotationHash] = string(pod.UID)
	pod.Annotations[AnnotationSource] = o.Source
	pod.Annotations[AnnotationSeen] = o.Seen.Format(seenLayout)
	pod.Spec.NodeName = o.NodeName
	if o.Source == SourceFile {
		tolerateAll(&pod.Spec)
	}
	pod.Status = v1.PodStatus{Phase: v1.PodPending}
}

// tolerateAll keeps a file's pod on its node whatever the node's taints: the
// user put it there, and nobody else could put it back.
func tolerateAll(spec *v1.PodSpec) {
	all := v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}
	for i := range spec.Tolerations {
		if spec.Tolerations[i].MatchToleration(&all) {
			spec.Tolerations[i] = all
			return
		}
	}
	spec.Tolerations = append(spec.Tolerations, all)
}
