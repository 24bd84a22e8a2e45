package container_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/container"
)

var _ container.Runtime = (*cri.Client)(nil)

// fakeRuntime has one container, fails where its map says and logs calls.
type fakeRuntime struct {
	calls []string
	fail  map[string]error // by method
	made  *runtimeapi.ContainerConfig
	in    string

	updated *runtimeapi.LinuxContainerResources
	with    *runtimeapi.PodSandboxConfig
	status  *runtimeapi.ContainerStatus // as it will be read
}

func (r *fakeRuntime) call(method, what string) error {
	r.calls = append(r.calls, method+" "+what)
	return r.fail[method]
}

func (r *fakeRuntime) CreateContainer(_ context.Context, sandbox string, c *runtimeapi.ContainerConfig, sb *runtimeapi.PodSandboxConfig) (string, error) {
	r.in, r.made, r.with = sandbox, c, sb
	return "c1", r.call("create", c.GetMetadata().GetName())
}

func (r *fakeRuntime) UpdateContainerResources(_ context.Context, id string, with *runtimeapi.LinuxContainerResources) error {
	r.updated = with
	return r.call("update", id)
}

func (r *fakeRuntime) StartContainer(_ context.Context, id string) error { return r.call("start", id) }

func (r *fakeRuntime) ContainerStatus(_ context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	if err := r.call("status", id); err != nil {
		return nil, err
	}
	return r.status, nil
}

func (r *fakeRuntime) StopContainer(_ context.Context, id string, grace time.Duration) error {
	return r.call("stop", fmt.Sprint(id, " ", grace))
}

func (r *fakeRuntime) RemoveContainer(_ context.Context, id string) error {
	return r.call("remove", id)
}

// recorder keeps events as "PATH TYPE REASON: MESSAGE".
type recorder struct {
	lines []string
	pod   *v1.Pod
}

func (r *recorder) Event(p *v1.Pod, fieldPath, eventType, reason, message string) {
	r.pod = p
	r.lines = append(r.lines, fieldPath+" "+eventType+" "+reason+": "+message)
}

// fakeFiles knows paths and keeps what would be written.
type fakeFiles struct {
	hosts   []container.Hosts
	hostErr error
	logErr  error
}

func (f *fakeFiles) HostsFile(uid types.UID) string { return "/pods/" + string(uid) + "/etc-hosts" }

func (f *fakeFiles) WriteHosts(_ types.UID, h container.Hosts) error {
	f.hosts = append(f.hosts, h)
	return f.hostErr
}

func (f *fakeFiles) NewTerminationLog(uid types.UID, name string) (string, error) {
	return "/pods/" + string(uid) + "/" + name + "/log", f.logErr
}

// fakeVolumes has every volume but "broken".
type fakeVolumes struct{}

func (fakeVolumes) VolumePath(p *v1.Pod, volume string) (string, error) {
	if volume == "broken" {
		return "", errors.New("it is not set up")
	}
	return "/pods/" + string(p.UID) + "/" + volume, nil
}

func (fakeVolumes) SubPath(p *v1.Pod, ct *v1.Container, index int, name string) (string, error) {
	if name == "broken" {
		return "", errors.New("it leads out of the volume")
	}
	return fmt.Sprintf("/pods/%s/parts/%s/%d/%s", p.UID, ct.Name, index, name), nil
}

// nodeUsers: the pod shares the node's user namespace.
var nodeUsers = &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE}

// rig is Containers over fakes.
type rig struct {
	rt    *fakeRuntime
	ev    *recorder
	files *fakeFiles
	*container.Containers
}

func newRig(change func(s *container.Settings)) *rig {
	r := &rig{rt: &fakeRuntime{fail: map[string]error{}}, ev: &recorder{}, files: &fakeFiles{}}
	settings := container.Settings{NodeIPs: []string{"192.0.2.7", "2001:db8::7"}, Memory: 16 << 30, SeccompDir: "/var/lib/kubelet/seccomp"}
	if change != nil {
		change(&settings)
	}
	r.Containers = container.New(container.Config{
		Runtime: r.rt, Events: r.ev, Volumes: fakeVolumes{}, Files: r.files,
		Hash:     func(c *v1.Container) string { return "hash-" + c.Name },
		Settings: settings,
	})
	r.rt.status = &runtimeapi.ContainerStatus{
		Id: "c1", Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, State: runtimeapi.ContainerState_CONTAINER_RUNNING, CreatedAt: 5, StartedAt: 6,
	}
	return r
}

// start returns a start of the container app of a pod, which change may change.
func start(change func(p *v1.Pod, app *v1.Container)) container.Start {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "prod", UID: "u-1", Labels: map[string]string{"tier": "front"}},
		Spec: v1.PodSpec{
			NodeName:   "n1",
			Containers: []v1.Container{{Name: "app", Image: "img:1"}},
		},
	}
	if change != nil {
		change(p, &p.Spec.Containers[0])
	}
	return container.Start{
		State: &pod.State{
			Spec:      &pod.Spec{Pod: p, Source: pod.SourceFile},
			Identity:  pod.Identity{Name: p.Name, Namespace: p.Namespace, UID: p.UID},
			Sandboxes: []pod.Sandbox{{ID: "s0", IPs: []string{"10.0.0.1"}}, {ID: "s1", IPs: []string{"10.0.0.9", "fd00::9"}}},
		},
		Container: &p.Spec.Containers[0],
		Attempt:   3,
		SandboxID: "s1",
		Sandbox:   &runtimeapi.PodSandboxConfig{LogDirectory: "/var/log/pods/prod_web_u-1"},
		Image:     pod.Image{ID: "sha256:1"},
	}
}

// request returns what the runtime is asked for.
func request(t *testing.T, r *rig, st container.Start) *runtimeapi.ContainerConfig {
	t.Helper()
	_, err := r.Start(t.Context(), st)
	require.NoError(t, err)
	return r.rt.made
}

// refused returns the error of a start whose request cannot be built.
func refused(t *testing.T, r *rig, st container.Start) error {
	t.Helper()
	_, err := r.Start(t.Context(), st)
	require.Error(t, err)
	require.Equal(t, "CreateContainerConfigError", pod.ReasonOf(err))
	require.Empty(t, r.rt.calls)
	require.Equal(t, []string{"spec.containers{app} Warning Failed: Error: " + err.Error()}, r.ev.lines)
	return err
}

func uncertain(err error) bool {
	var u interface{ Uncertain() bool }
	return errors.As(err, &u) && u.Uncertain()
}

// soon reports whether the engine is asked to run the stage again after 1 s.
func soon(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if reflect.DeepEqual(err, dag.RetryAfter(errors.Unwrap(err), time.Second)) {
			return true
		}
	}
	return false
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func lines(n int, line string) string { return strings.Repeat(line+"\n", n) }
