package oracle_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // as a kubelet has it
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	api "k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/flowlet/flowlet/internal/manifest"
)

const node = "node-1"

func TestMain(m *testing.M) {
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true}) // as a kubelet does
	if err := logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate); err != nil {
		panic(err)
	}
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard) // it tells of every manifest that is refused
	os.Exit(m.Run())
}

// corpus is the pods in testdata, as written, by file name.
func corpus(t *testing.T) map[string]*v1.Pod {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	pods := map[string]*v1.Pod{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		m, err := manifest.Decode(path, data)
		require.NoError(t, err)
		require.Empty(t, m.Warnings)
		pods[filepath.Base(path)] = m.Pod
	}
	return pods
}

// internal is a v1 pod in the form that Kubernetes validates.
func internal(t *testing.T, pod *v1.Pod) *api.Pod {
	t.Helper()
	out := &api.Pod{}
	require.NoError(t, corev1.Convert_v1_Pod_To_core_Pod(pod.DeepCopy(), out, nil))
	return out
}

// theirDefaults is what the API server makes of a new pod.
func theirDefaults(t *testing.T, pod *v1.Pod) *v1.Pod {
	t.Helper()
	out := pod.DeepCopy()
	corev1.SetObjectDefaults_Pod(out)
	if out.Spec.Resources == nil {
		return out
	}
	whole := internal(t, out)
	podutil.DefaultPodLevelResources(whole)
	require.NoError(t, corev1.Convert_core_ResourceRequirements_To_v1_ResourceRequirements(whole.Spec.Resources, out.Spec.Resources, nil))
	return out
}

// theirVerdict validates a defaulted pod as a kubelet does.
func theirVerdict(t *testing.T, pod *v1.Pod) field.ErrorList {
	t.Helper()
	in := internal(t, pod)
	if in.Namespace == "" {
		in.Namespace = metav1.NamespaceDefault
	}
	in.Spec.NodeName = node
	opts := podutil.GetValidationOptionsFromPodSpecAndMeta(&in.Spec, nil, &in.ObjectMeta, nil)
	return validation.ValidatePodCreate(in, opts)
}

// theirReference is what makes a kubelet refuse a static pod because of the
// objects that it needs; empty when nothing does.
func theirReference(t *testing.T, pod *v1.Pod) string {
	t.Helper()
	_, kind, err := podutil.HasAPIObjectReference(internal(t, pod))
	switch {
	case err != nil:
		return "must specify a source" // in our words
	case kind != "":
		return "static pods may not reference " + kind
	}
	return ""
}
