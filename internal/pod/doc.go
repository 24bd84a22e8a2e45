// Package pod holds the words of the domain: what is known about one pod, the
// changes that add to it, the pure [Fold] that applies them, and the phases a
// pod goes through. It does no I/O and knows neither the engine nor the
// runtime's API.
//
// Values are immutable: Fold returns a new State and never touches the old
// one, so a State may be read by anybody without a lock.
package pod

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Key is what the pipeline is keyed by: a pod UID, or a node chore below "node/".
type Key string

// KeyOf returns the key of a pod.
func KeyOf(uid types.UID) Key { return Key(uid) }

// choreNamespace makes the names of chores those of pods for whoever shows them.
const choreNamespace = "node"

// ChoreKey returns the key of a node chore.
func ChoreKey(name string) Key { return Key(choreNamespace + "/" + name) }

// IsChore reports whether k is a node chore.
func (k Key) IsChore() bool { return strings.HasPrefix(string(k), choreNamespace+"/") }

// ChoreName returns the name of a node chore; only for keys of chores.
func (k Key) ChoreName() string { return strings.TrimPrefix(string(k), choreNamespace+"/") }

// Object names something of the pod that stages change, for the engine.
func (k Key) Object(what string) string { return string(k) + "/" + what }

// UID returns the pod's UID; only for keys of pods.
func (k Key) UID() types.UID { return types.UID(k) }

// Names of the sources, as in the annotation kubernetes.io/config.source.
const (
	SourceFile = "file"
	SourceHTTP = "http"
	SourceAPI  = "api"
)

// Annotations and labels that tools and other node agents match on
// (kubelet v1.37.2; docs/differences.md).
const (
	AnnotationSource = "kubernetes.io/config.source"
	AnnotationSeen   = "kubernetes.io/config.seen"
	AnnotationHash   = "kubernetes.io/config.hash"

	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"

	AnnotationContainerHash    = "io.kubernetes.container.hash"
	AnnotationRestartCount     = "io.kubernetes.container.restartCount"
	AnnotationMessagePath      = "io.kubernetes.container.terminationMessagePath"
	AnnotationMessagePolicy    = "io.kubernetes.container.terminationMessagePolicy"
	AnnotationPorts            = "io.kubernetes.container.ports"
	AnnotationPodGrace         = "io.kubernetes.pod.terminationGracePeriod"
	AnnotationPodDeletionGrace = "io.kubernetes.pod.deletionGracePeriod"

	// AnnotationPostStart is on the containers that flowlet made with a
	// postStart hook, whose end is kept in the state file. Hooks of other
	// agents' containers ran, or did not, under those agents.
	AnnotationPostStart = "flowlet.dev/postStart"
)
