package image_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/image"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ image.Runtime = (*cri.Client)(nil)

// fakeRuntime has the images of its map, pulls what is asked for and counts.
type fakeRuntime struct {
	images    map[string]*runtimeapi.Image
	pulls     []string
	looks     []string
	annotated map[string]string
	sandbox   *runtimeapi.PodSandboxConfig
	pullErr   error
	lookErr   error
	takes     time.Duration
}

func (r *fakeRuntime) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, _ *runtimeapi.AuthConfig, sb *runtimeapi.PodSandboxConfig) (string, error) {
	r.pulls = append(r.pulls, spec.GetImage())
	r.sandbox = sb
	r.annotated = spec.GetAnnotations()
	select {
	case <-ctx.Done():
		return "", status.FromContextError(ctx.Err()).Err()
	case <-time.After(r.takes):
	}
	return "sha256:pulled", r.pullErr
}

func (r *fakeRuntime) ImageStatus(_ context.Context, spec *runtimeapi.ImageSpec) (*runtimeapi.Image, error) {
	r.looks = append(r.looks, spec.GetImage())
	return r.images[spec.GetImage()], r.lookErr
}

// recorder keeps events as "PATH TYPE REASON: MESSAGE".
type recorder struct{ lines []string }

func (r *recorder) Event(_ *v1.Pod, fieldPath, eventType, reason, message string) {
	r.lines = append(r.lines, fieldPath+" "+eventType+" "+reason+": "+message)
}

func aPod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u1", Annotations: map[string]string{"a": "b"}},
		Spec: v1.PodSpec{
			InitContainers: []v1.Container{{Name: "first", Image: "other"}},
			Containers:     []v1.Container{{Name: "web", Image: "nginx"}},
		},
	}
}

func TestLook(t *testing.T) {
	present := map[string]*runtimeapi.Image{
		"nginx:latest": {Id: "sha256:1", Uid: &runtimeapi.Int64Value{Value: 101}, Username: ""},
	}
	for name, tc := range map[string]struct {
		images  map[string]*runtimeapi.Image
		lookErr error
		ref     string
		policy  v1.PullPolicy
		facts   pod.Facts
		reason  string
		text    string
		events  []string
	}{
		"present": {
			images: present, ref: "nginx", policy: v1.PullIfNotPresent,
			facts: pod.Facts{pod.ImageFound{Ref: "nginx", Image: pod.Image{ID: "sha256:1", UID: ptr.To[int64](101)}}},
			events: []string{
				`spec.containers{web} Normal Pulled: Container image "nginx" already present on machine and can be accessed by the pod`,
			},
		},
		"absent": {
			ref: "nginx", policy: v1.PullIfNotPresent,
			facts: pod.Facts{pod.ImageFound{Ref: "nginx"}},
		},
		"absent with policy Never": {
			ref: "nginx", policy: v1.PullNever,
			facts:  pod.Facts{pod.ImageFound{Ref: "nginx"}},
			reason: "ErrImageNeverPull", text: `Container image "nginx" is not present with pull policy of Never`,
			events: []string{
				`spec.containers{web} Warning ErrImageNeverPull: Container image "nginx" is not present with pull policy of Never`,
			},
		},
		"a name that is none": {
			ref: "NGINX", policy: v1.PullIfNotPresent, reason: "InvalidImageName",
			text: `couldn't parse image name "NGINX": invalid reference format: repository name (library/NGINX) must be lowercase`,
			events: []string{
				` Warning InspectFailed: Failed to apply default image tag "NGINX": couldn't parse image name "NGINX": ` +
					`invalid reference format: repository name (library/NGINX) must be lowercase`,
			},
		},
		"the runtime fails": {
			ref: "nginx", policy: v1.PullIfNotPresent, lookErr: errors.New("disk on fire"),
			reason: "ImageInspectError", text: `failed to inspect image "nginx": disk on fire`,
			events: []string{
				`spec.containers{web} Warning InspectFailed: failed to inspect image "nginx": disk on fire`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rt, ev := &fakeRuntime{images: tc.images, lookErr: tc.lookErr}, &recorder{}
			facts, err := image.New(image.Config{Runtime: rt, Events: ev}).Look(t.Context(), aPod(), tc.ref, tc.policy)
			require.Equal(t, tc.reason, pod.ReasonOf(err))
			if tc.text != "" {
				require.EqualError(t, err, tc.text)
			}
			require.Empty(t, cmp.Diff(tc.facts, facts))
			require.Equal(t, tc.events, ev.lines)
		})
	}
}

func TestPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := &fakeRuntime{takes: 1500 * time.Millisecond, images: map[string]*runtimeapi.Image{
			"sha256:pulled": {Id: "sha256:id", Username: "www", Size: 42},
		}}
		ev := &recorder{}
		sandbox := &runtimeapi.PodSandboxConfig{Hostname: "p"}
		facts, err := image.New(image.Config{Runtime: rt, Events: ev}).Pull(t.Context(), aPod(), "nginx", sandbox)
		require.NoError(t, err)
		require.Equal(t, pod.Facts{pod.ImageFound{Ref: "nginx", Image: pod.Image{ID: "sha256:id", User: "www"}, By: "u1"}}, facts)
		require.Equal(t, []string{"nginx:latest"}, rt.pulls)
		require.Equal(t, []string{"sha256:pulled"}, rt.looks, "the image is read by what the pull returned")
		require.Equal(t, map[string]string{"a": "b"}, rt.annotated)
		require.Same(t, sandbox, rt.sandbox)
		require.Equal(t, []string{
			`spec.containers{web} Normal Pulling: Pulling image "nginx"`,
			`spec.containers{web} Normal Pulled: Successfully pulled image "nginx" in 1.5s (1.5s including waiting). Image size: 42 bytes.`,
		}, ev.lines)
	})
}

func TestPullOfAnImageThatTheRuntimeDoesNotFindAgain(t *testing.T) {
	facts, err := image.New(image.Config{Runtime: &fakeRuntime{}, Events: &recorder{}}).Pull(t.Context(), aPod(), "nginx", nil)
	require.NoError(t, err)
	require.Equal(t, pod.Facts{pod.ImageFound{Ref: "nginx", Image: pod.Image{ID: "sha256:pulled"}, By: "u1"}}, facts)
}

func TestPullFails(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		reason string
	}{
		"as pulls do":           {status.Error(codes.Unknown, "not found"), "ErrImagePull"},
		"registry away":         {status.Error(codes.Unknown, "RegistryUnavailable: dial tcp"), "RegistryUnavailable"},
		"signature":             {status.Error(codes.Unknown, "SignatureValidationFailed: no"), "SignatureValidationFailed"},
		"as the client says it": {&cri.Error{Method: "PullImage", Err: status.Error(codes.Unknown, "RegistryUnavailable: x"), Sent: true}, "RegistryUnavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			ev := &recorder{}
			facts, err := image.New(image.Config{Runtime: &fakeRuntime{pullErr: tc.err}, Events: ev}).Pull(t.Context(), aPod(), "nginx", nil)
			require.Empty(t, facts)
			require.Equal(t, tc.reason, pod.ReasonOf(err))
			require.ErrorIs(t, err, tc.err)
			require.Equal(t, []string{
				`spec.containers{web} Normal Pulling: Pulling image "nginx"`,
				`spec.containers{web} Warning Failed: Failed to pull image "nginx": ` + tc.err.Error(),
				`spec.containers{web} Warning Failed: Error: ` + tc.reason,
			}, ev.lines)
		})
	}
}

func TestPullThatIsReadWrong(t *testing.T) {
	_, err := image.New(image.Config{Runtime: &fakeRuntime{lookErr: errors.New("boom")}, Events: &recorder{}}).Pull(t.Context(), aPod(), "nginx", nil)
	require.Equal(t, "ImageInspectError", pod.ReasonOf(err))
}

func TestPullGivenUpMakesNoFailedEvent(t *testing.T) {
	for cause, events := range map[error]int{dag.ErrSuperseded: 1, dag.ErrStopping: 1, dag.ErrDeadline: 3} {
		t.Run(cause.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(cause) })
				ev := &recorder{}
				_, err := image.New(image.Config{Runtime: &fakeRuntime{takes: time.Hour}, Events: ev}).Pull(ctx, aPod(), "nginx", nil)
				require.Error(t, err)
				require.Len(t, ev.lines, events)
			})
		})
	}
}

func TestPullsAboveTheLimitWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, ev := &fakeRuntime{}, &recorder{}
		images := image.New(image.Config{Runtime: rt, Events: ev, Limit: image.Limiter(0.5, 1)})
		began := time.Now()
		for range 3 {
			_, err := images.Pull(t.Context(), aPod(), "nginx", nil)
			require.NoError(t, err)
		}
		require.Equal(t, 4*time.Second, time.Since(began))
		require.Contains(t, ev.lines[len(ev.lines)-1], "in 0s (2s including waiting)")

		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(dag.ErrSuperseded)
		_, err := images.Pull(ctx, aPod(), "nginx", nil)
		require.ErrorIs(t, err, dag.ErrSuperseded)
		require.Len(t, rt.pulls, 3)
	})
}

func TestNoLimit(t *testing.T) { require.Nil(t, image.Limiter(0, 10)) }

func TestUnreachableRuntimeIsSoonTriedAgain(t *testing.T) {
	away := status.Error(codes.Unavailable, "connection refused")
	images := image.New(image.Config{Runtime: &fakeRuntime{pullErr: away, lookErr: away}, Events: &recorder{}})
	_, lookErr := images.Look(t.Context(), aPod(), "nginx", v1.PullIfNotPresent)
	_, pullErr := images.Pull(t.Context(), aPod(), "nginx", nil)
	require.True(t, soon(lookErr))
	require.True(t, soon(pullErr))
	require.False(t, soon(errors.New("another")))
}

// soon reports whether the engine is asked to run the stage again after 1 s.
func soon(err error) bool {
	return inChain(err, func(e error) bool { return reflect.DeepEqual(e, dag.RetryAfter(errors.Unwrap(e), time.Second)) })
}

// terminal reports whether the engine is asked not to run the stage again.
func terminal(err error) bool {
	return inChain(err, func(e error) bool { return reflect.DeepEqual(e, dag.Terminal(errors.Unwrap(e))) })
}

func inChain(err error, is func(error) bool) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if is(err) {
			return true
		}
	}
	return false
}
