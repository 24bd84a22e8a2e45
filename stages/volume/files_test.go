package volume_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

const (
	downwardAPI = "volumes/kubernetes.io~downward-api/v"
	projected   = "volumes/kubernetes.io~projected/v"
)

func field(path, from string) corev1.DownwardAPIVolumeFile {
	return corev1.DownwardAPIVolumeFile{Path: path, FieldRef: &corev1.ObjectFieldSelector{FieldPath: from}}
}

func ofContainer(path, container, of string) corev1.DownwardAPIVolumeFile {
	return corev1.DownwardAPIVolumeFile{Path: path, ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: container, Resource: of}}
}

func downward(items ...corev1.DownwardAPIVolumeFile) corev1.Volume {
	v := corev1.Volume{Name: "v"}
	v.DownwardAPI = &corev1.DownwardAPIVolumeSource{Items: items, DefaultMode: ptr.To[int32](0o644)}
	return v
}

// seen is what a user sees in a directory: contents by path.
func seen(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	var walk func(rel string)
	walk = func(rel string) {
		entries, err := os.ReadDir(filepath.Join(dir, rel))
		require.NoError(t, err)
		for _, e := range entries {
			at := filepath.Join(rel, e.Name())
			if strings.HasPrefix(e.Name(), "..") {
				continue
			}
			info, err := os.Stat(filepath.Join(dir, at))
			require.NoError(t, err, "a link to nowhere")
			if info.IsDir() {
				walk(at)
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, at))
			require.NoError(t, err)
			out[at] = string(data)
		}
	}
	walk("")
	return out
}

// own are the names in dir that are not for users.
func own(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			out = append(out, e.Name())
		}
	}
	return out
}

func TestDownwardAPI(t *testing.T) {
	f := newFixture(t)
	f.volumes.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("3500m"), "memory": resource.MustParse("2Gi")}
	half := ofContainer("res/half", "c", "requests.cpu")
	half.ResourceFieldRef.Divisor = resource.MustParse("1m")
	secret := field("secret", "metadata.uid")
	secret.Mode = ptr.To[int32](0o400)
	v := downward(field("labels", "metadata.labels"), field("one/label", "metadata.labels['tier']"), field("one/./note", "metadata.annotations['n']"),
		field("name", "metadata.name"), field("ns", "metadata.namespace"), secret,
		ofContainer("res/cpu", "c", "limits.cpu"), ofContainer("res/memory", "c", "limits.memory"), ofContainer("res/init", "i", "limits.memory"), half)
	p := testPod(v)
	p.Labels = map[string]string{"tier": "front", "app": "a\"b\nc"}
	p.Annotations = map[string]string{"n": "é"}
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"memory": resource.MustParse("64Mi")}
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("500m")}
	_, err := f.volumes.VolumePath(p, "v")
	require.ErrorContains(t, err, "it is not set up")
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	require.Empty(t, cmp.Diff(map[string]string{
		"labels": "app=\"a\\\"b\\nc\"\ntier=\"front\"", "one/label": "front", "one/note": "é", "name": "p", "ns": "ns", "secret": "u1",
		"res/cpu": "4", "res/memory": "67108864", "res/init": "2147483648", "res/half": "500",
	}, seen(t, f.path(downwardAPI))))
	dir, err := f.volumes.VolumePath(p, "v")
	require.NoError(t, err)
	require.Equal(t, f.path(downwardAPI), dir)
	require.Len(t, f.mounts.MountPoints, 1)
	require.Equal(t, "tmpfs", f.mounts.MountPoints[0].Type)
	require.Contains(t, f.mounts.MountPoints[0].Opts, "size=1073741824")
	for name, mode := range map[string]fs.FileMode{"labels": 0o644, "secret": 0o400} {
		info, err := os.Stat(f.path(downwardAPI, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode())
	}
	to, err := os.Readlink(f.path(downwardAPI, "one"))
	require.NoError(t, err)
	require.Equal(t, "..data/one", to)
	require.NoError(t, f.volumes.Unmount(t.Context(), state(p)))
	require.NoDirExists(t, f.path(downwardAPI))
	require.Empty(t, f.mounts.MountPoints)
}

func TestProjectedMergesInOrder(t *testing.T) {
	f := newFixture(t)
	v := corev1.Volume{Name: "v"}
	v.Projected = &corev1.ProjectedVolumeSource{DefaultMode: ptr.To[int32](0o600), Sources: []corev1.VolumeProjection{
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{field("a", "metadata.name"), field("b", "metadata.name")}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{field("b", "metadata.uid")}}},
	}}
	p := testPod(v)
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	require.Equal(t, map[string]string{"a": "p", "b": "u1"}, seen(t, f.path(projected)))
	info, err := os.Stat(f.path(projected, "a"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())

	v.Projected.Sources = append(v.Projected.Sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{}})
	require.ErrorContains(t, f.volumes.Ensure(t.Context(), p, &v), "projected.sources[2]: this node runs without an API server")
}

func TestGroupReadsFiles(t *testing.T) {
	f := newFixture(t)
	item := field("d/a", "metadata.name")
	item.Mode = ptr.To[int32](0o400)
	v := downward(item)
	p := testPod(v)
	p.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To(int64(os.Getgid()))}
	for range 2 {
		require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	}
	for name, mode := range map[string]fs.FileMode{"d/a": 0o440, "d": 0o755 | fs.ModeDir | fs.ModeSetgid, "..data": 0o755 | fs.ModeDir | fs.ModeSetgid} {
		info, err := os.Stat(f.path(downwardAPI, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), name)
	}
}

func TestNothingIsWrittenWhenNothingChanged(t *testing.T) {
	f := newFixture(t)
	v := downward(field("d/a", "metadata.name"), field("b", "metadata.name"))
	p := testPod(v)
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	steps := 0
	f.volumes.Stop(func(step string) error {
		if step != "mounted" {
			steps++
		}
		return nil
	})
	before := own(t, f.path(downwardAPI))
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	require.Zero(t, steps)
	require.Equal(t, before, own(t, f.path(downwardAPI)))

	for name, change := range map[string]func(){
		"content": func() { p.Name = "q" },
		"mode":    func() { v.DownwardAPI.DefaultMode = ptr.To[int32](0o600) },
		"fewer":   func() { v.DownwardAPI.Items = v.DownwardAPI.Items[:1] },
		"damaged": func() { require.NoError(t, os.Remove(f.path(downwardAPI, "..data/d/a"))) },
	} {
		change()
		steps = 0
		require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
		require.Positive(t, steps, name)
		require.Len(t, own(t, f.path(downwardAPI)), 2, name)
		require.Equal(t, p.Name, seen(t, f.path(downwardAPI))["d/a"])
	}
}

// After every step of a first write and of a change the agent ends. A user sees
// all the old files or all the new ones, and the next run makes them right.
func TestStoppedAfterEachStep(t *testing.T) {
	stopped := errors.New("stopped")
	first := downward(field("stays", "metadata.name"), field("gone", "metadata.name"), field("d/x", "metadata.name"))
	second := downward(field("stays", "metadata.uid"), field("new", "metadata.uid"), field("d/y", "metadata.uid"))
	old, now := map[string]string{"stays": "p", "gone": "p", "d/x": "p"}, map[string]string{"stays": "u1", "new": "u1", "d/y": "u1"}
	for steps := 1; ; steps++ {
		f := newFixture(t)
		p := testPod(first)
		left := steps
		stop := func(string) error {
			if left--; left == 0 {
				return stopped
			}
			return nil
		}
		f.volumes.Stop(stop)
		err := f.volumes.Ensure(t.Context(), p, &first)
		if err == nil {
			err = f.volumes.Ensure(t.Context(), p, &second)
			is := whole(t, f.path(downwardAPI))
			require.True(t, cmp.Equal(is, old) || cmp.Equal(is, now), "step %d: %v", steps, is)
		}
		if err == nil {
			require.Greater(t, steps, 20, "it was stopped at each step")
			return
		}
		require.ErrorIs(t, err, stopped)
		f.volumes.Stop(nil)
		if steps%2 == 0 {
			require.NoError(t, f.volumes.Ensure(t.Context(), p, &second))
			require.Equal(t, now, seen(t, f.path(downwardAPI)), "step %d", steps)
			require.Len(t, own(t, f.path(downwardAPI)), 2, "step %d", steps)
		}
		require.NoError(t, f.volumes.Unmount(t.Context(), state(p)))
		require.NoDirExists(t, f.path(downwardAPI))
	}
}

// whole is what the data directory holds: what a user who follows a link sees.
func whole(t *testing.T, dir string) map[string]string {
	t.Helper()
	return seen(t, filepath.Join(dir, "..data"))
}

func TestWhatACrashOrAKubeletLeftIsTakenAway(t *testing.T) {
	f := newFixture(t)
	v := downward(field("a", "metadata.name"))
	p := testPod(v)
	dir := f.path(downwardAPI)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "..2020_01_01_00_00_00.1/x"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "...data77"), 0o700))
	require.NoError(t, os.Symlink("..2020_01_01_00_00_00.1", filepath.Join(dir, "..data_tmp")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink("..data/x", filepath.Join(dir, "x")))
	require.NoError(t, os.Symlink("wrong", filepath.Join(dir, "a")))
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(dir, "foreign")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "mountpoint"), 0o755))
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	require.NoError(t, os.Remove(filepath.Join(dir, "foreign")), "what is not ours is left")
	require.DirExists(t, filepath.Join(dir, "mountpoint"))
	require.Equal(t, map[string]string{"a": "p"}, seen(t, dir))
	require.Len(t, own(t, dir), 2)
}

func TestMountPointsInsideOfFilesAreMade(t *testing.T) {
	f := newFixture(t)
	v := downward(field("a", "metadata.name"))
	p := testPod(v)
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
		{Name: "v", MountPath: "/info/"}, {Name: "w", MountPath: "/info/in/side"}, {Name: "w", MountPath: "/information"}, {Name: "w", MountPath: "/info/a"},
	}
	for range 2 {
		require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	}
	require.DirExists(t, f.path(downwardAPI, "in/side"))
	entries, err := os.ReadDir(f.path(downwardAPI))
	require.NoError(t, err)
	require.Len(t, entries, 4, "..data, what it points to, in and a")
}

func TestFilesThatCannotBe(t *testing.T) {
	long := strings.Repeat("x", 256)
	for path, want := range map[string]string{
		"../x": `may not start with ".."`, "..x": `may not start with ".."`, "/x": "may not be absolute", ".": "names no file",
		"a/" + long: "longer than 255", strings.Repeat("a/", 2100) + "a": "longer than 4096", "f/x": `"f" is a file`,
	} {
		f := newFixture(t)
		v := downward(field("f", "metadata.name"), field(path, "metadata.name"))
		err := f.volumes.Ensure(t.Context(), testPod(v), &v)
		require.ErrorContains(t, err, "volume v of pod ns/p: path ")
		require.ErrorContains(t, err, want)
		require.NoDirExists(t, f.path(downwardAPI), "nothing is made")
	}
	for want, item := range map[string]corev1.DownwardAPIVolumeFile{
		"file x: fieldRef status.podIP: ":                                       field("x", "status.podIP"),
		`file x: resourceFieldRef limits.cpu: the pod has no container "other"`: ofContainer("x", "other", "limits.cpu"),
		"file x: resourceFieldRef limits.gpu: ":                                 ofContainer("x", "c", "limits.gpu"),
		"file x: neither fieldRef nor resourceFieldRef":                         {Path: "x"},
	} {
		f, v := newFixture(t), downward(item)
		require.ErrorContains(t, f.volumes.Ensure(t.Context(), testPod(v), &v), want)
	}
}

// TestRandomFiles: whatever follows on whatever, exactly the last files are
// seen, with no leftovers, and whoever stops in between does no harm.
func TestRandomFiles(t *testing.T) {
	names := []string{"a", "b", "d/a", "d/b", "d/e/a", "e/a"}
	rapid.Check(t, func(rt *rapid.T) {
		f := newFixture(t)
		for range rapid.IntRange(1, 3).Draw(rt, "writes") {
			var items []corev1.DownwardAPIVolumeFile
			want := map[string]string{}
			for _, n := range rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(rt, "names") {
				if rapid.Bool().Draw(rt, "uid") {
					items, want[n] = append(items, field(n, "metadata.uid")), "u1"
				} else {
					items, want[n] = append(items, field(n, "metadata.name")), "p"
				}
			}
			v, left := downward(items...), rapid.IntRange(0, 25).Draw(rt, "stop")
			f.volumes.Stop(func(string) error {
				if left--; left == 0 {
					return errors.New("stopped")
				}
				return nil
			})
			_ = f.volumes.Ensure(t.Context(), testPod(v), &v)
			f.volumes.Stop(nil)
			require.NoError(rt, f.volumes.Ensure(t.Context(), testPod(v), &v))
			require.Equal(rt, want, seen(t, f.path(downwardAPI)), slices.Sorted(maps.Keys(want)))
			require.Len(rt, own(t, f.path(downwardAPI)), 2)
		}
	})
}
