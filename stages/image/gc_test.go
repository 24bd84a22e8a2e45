package image_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/usage"
	"github.com/flowlet/flowlet/stages/image"
)

// stock is a runtime with images on a disk of 1000 bytes.
type stock struct {
	images     []*runtimeapi.Image
	containers []*runtimeapi.Container
	wanted     map[string]bool
	other      int64 // bytes that are no images
	removed    []string
	broken     map[string]error
	gate       chan struct{} // removals wait for it
	told       []string
	capacity   int64
}

func (s *stock) ListImages(context.Context) ([]*runtimeapi.Image, error) {
	return s.images, s.broken["list"]
}

func (s *stock) ListContainers(context.Context, *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	return s.containers, nil
}

func (s *stock) RemoveImage(_ context.Context, spec *runtimeapi.ImageSpec) error {
	id := spec.GetImage()
	if s.gate != nil {
		<-s.gate
	}
	if err := s.broken[id]; err != nil {
		return err
	}
	s.removed = append(s.removed, id)
	var left []*runtimeapi.Image
	for _, img := range s.images {
		if img.GetId() != id {
			left = append(left, img)
		}
	}
	s.images = left
	return nil
}

func (s *stock) PullImage(context.Context, *runtimeapi.ImageSpec, *runtimeapi.AuthConfig, *runtimeapi.PodSandboxConfig) (string, error) {
	return "", errors.New("not here")
}

func (s *stock) ImageStatus(_ context.Context, spec *runtimeapi.ImageSpec) (*runtimeapi.Image, error) {
	for _, img := range s.images {
		if img.GetRepoTags()[0] == spec.GetImage() {
			return img, nil
		}
	}
	return nil, nil
}

func (s *stock) space(context.Context) (usage.Filesystem, error) {
	used := s.other
	for _, img := range s.images {
		used += int64(img.GetSize())
	}
	return usage.Filesystem{Bytes: usage.Amount{Available: s.capacity - used, Capacity: s.capacity}}, nil
}

// add puts an image with that many bytes on the disk; its ID is its name.
func (s *stock) add(name string, size uint64) *runtimeapi.Image {
	img := &runtimeapi.Image{Id: name, RepoTags: []string{name + ":latest"}, Size: size}
	s.images = append(s.images, img)
	return img
}

func (s *stock) run(id string) {
	s.containers = append(s.containers, &runtimeapi.Container{ImageId: id, State: runtimeapi.ContainerState_CONTAINER_EXITED})
}

func (s *stock) collector(r image.Rules) (*image.Images, *image.Collector) {
	images := image.New(image.Config{Runtime: s, Events: &recorder{}})
	return images, images.Collector(image.CollectorConfig{
		Rules: r, Stock: s, Space: s.space,
		Wanted: func() map[string]bool {
			out := map[string]bool{}
			for id := range s.wanted {
				out[id] = true
			}
			return out
		},
		Tell: func(reason, message string) { s.told = append(s.told, reason+": "+message) },
	})
}

func newStock() *stock {
	return &stock{wanted: map[string]bool{}, broken: map[string]error{}, capacity: 1000}
}

var usual = image.Rules{High: 85, Low: 80, MinAge: 2 * time.Minute}

func TestSpaceIsMadeDownToTheLowThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock()
		for i := range 8 {
			s.add(fmt.Sprintf("i%d", i), 100)
		}
		_, c := s.collector(usual)
		require.NoError(t, c.Round(context.Background()))
		require.Empty(t, s.removed, "80 percent")
		s.other = 60 // 86 percent, 60 bytes to free
		require.NoError(t, c.Round(context.Background()))
		require.Equal(t, []string{"i0"}, s.removed)
		require.Empty(t, s.told)
	})
}

func TestWhatIsUsedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock()
		s.add("pause", 100).Pinned = true
		s.add("ran", 100)
		s.run("ran")
		s.add("by-name", 100)
		s.containers = append(s.containers, &runtimeapi.Container{Image: &runtimeapi.ImageSpec{Image: "by-name:latest"}})
		s.add("wanted", 100)
		s.wanted["wanted"] = true
		s.add("unused", 100)
		s.other = 400
		_, c := s.collector(usual)
		err := c.Round(context.Background())
		require.Equal(t, []string{"unused"}, s.removed)
		require.NoError(t, err)
		s.other = 590
		require.Error(t, c.Round(context.Background()))
		require.Equal(t, []string{"unused"}, s.removed)
		require.Len(t, s.told, 1)
		require.Contains(t, s.told[0], "FreeDiskSpaceFailed: Failed to garbage collect required amount of images. Attempted to free 190 bytes, but only found 0 bytes eligible to free.")
		require.Error(t, c.Round(context.Background()))
		require.Contains(t, strings.Join(s.told, "\n"), "ImageGCFailed: ", "the second time in a row")
		require.NoError(t, c.Unused(context.Background()))
		require.Equal(t, []string{"unused"}, s.removed)
	})
}

func TestTheLeastRecentlyUsedGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock()
		for _, name := range []string{"a", "b", "c"} {
			s.add(name, 100)
		}
		_, c := s.collector(usual)
		for _, used := range []string{"c", "a", "b"} {
			s.containers = nil
			s.run(used)
			require.NoError(t, c.Round(context.Background()))
			time.Sleep(5 * time.Minute)
		}
		s.containers, s.other = nil, 700
		require.NoError(t, c.Round(context.Background()))
		require.Equal(t, []string{"c", "a"}, s.removed)
	})
}

func TestYoungImagesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock()
		s.add("old", 50)
		s.other = 900
		_, c := s.collector(usual)
		require.Error(t, c.Round(context.Background()))
		require.Equal(t, []string{"old"}, s.removed, "what was there at the start has been there for ever")
		s.add("new", 90)
		require.Error(t, c.Round(context.Background()))
		time.Sleep(2*time.Minute - time.Second)
		require.Error(t, c.Round(context.Background()))
		require.Equal(t, []string{"old"}, s.removed)
		time.Sleep(time.Second)
		require.Error(t, c.Round(context.Background()))
		require.Equal(t, []string{"old", "new"}, s.removed)
	})
}

func TestImagesUnusedForTooLongGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock()
		s.add("never", 10)
		s.add("used", 10)
		s.run("used")
		_, c := s.collector(image.Rules{High: 100, Low: 80, MinAge: time.Minute, MaxAge: time.Hour})
		for range 12 {
			require.NoError(t, c.Round(context.Background()))
			time.Sleep(5 * time.Minute)
		}
		require.Empty(t, s.removed, "an agent that is younger than an hour cannot know")
		s.containers = nil
		time.Sleep(time.Second)
		require.NoError(t, c.Round(context.Background()))
		require.Equal(t, []string{"never"}, s.removed)
		time.Sleep(55*time.Minute + time.Second)
		require.NoError(t, c.Round(context.Background()))
		require.Equal(t, []string{"never", "used"}, s.removed)
	})
}

func TestCollectionThatFails(t *testing.T) {
	s := newStock()
	s.add("a-stuck", 100)
	s.add("free", 100)
	s.other, s.broken["a-stuck"] = 700, errors.New("in use by a snapshot")
	_, c := s.collector(usual)
	require.ErrorContains(t, c.Round(context.Background()), "removing image a-stuck: in use by a snapshot")
	require.Equal(t, []string{"free"}, s.removed, "one that cannot be removed does not keep the others")
	s.broken["list"] = errors.New("away")
	require.ErrorContains(t, c.Round(context.Background()), "listing images: away")
	require.Equal(t, []string{"ImageGCFailed: listing images: away"}, s.told)
	s.broken, s.capacity, s.other, s.images = nil, 0, 0, nil
	require.Error(t, c.Round(context.Background()))
	require.Contains(t, s.told[1], "InvalidDiskCapacity: invalid capacity 0 on image filesystem")
}

// Neither the others that are too old nor the room that is needed wait for one
// that cannot be removed.
func TestAnOldImageThatCannotBeRemovedKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock()
		s.add("a-stuck", 10)
		s.add("b-old", 10)
		_, c := s.collector(image.Rules{High: 85, Low: 80, MaxAge: time.Hour})
		require.NoError(t, c.Round(context.Background()))
		time.Sleep(time.Hour + time.Second)
		s.add("new", 100)
		s.other, s.broken["a-stuck"] = 800, errors.New("in use by a snapshot")
		require.ErrorContains(t, c.Round(context.Background()), "removing image a-stuck: in use by a snapshot")
		require.Equal(t, []string{"b-old", "new"}, s.removed)
	})
}

func TestAPodIsNeverToldOfAnImageThatIsBeingRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock()
		s.add("web", 900)
		s.gate = make(chan struct{})
		images, c := s.collector(usual)
		done := make(chan error)
		go func() { done <- c.Unused(context.Background()) }()
		synctest.Wait() // the removal is under way
		looked := make(chan pod.Facts)
		go func() {
			facts, _ := images.Look(context.Background(), &v1.Pod{}, "web", v1.PullIfNotPresent)
			looked <- facts
		}()
		synctest.Wait()
		select {
		case <-looked:
			require.Fail(t, "the pod was told of the image")
		default:
		}
		close(s.gate)
		require.NoError(t, <-done)
		require.Equal(t, pod.Facts{pod.ImageFound{Ref: "web"}}, <-looked, "it is not there")
	})
}

func TestAnImageThatAPodWasToldOfIsNotRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock()
		s.add("web", 900)
		images, c := s.collector(image.Rules{High: 85, Low: 80})
		facts, err := images.Look(context.Background(), &v1.Pod{}, "web", v1.PullIfNotPresent)
		require.NoError(t, err)
		require.Equal(t, pod.Facts{pod.ImageFound{Ref: "web", Image: pod.Image{ID: "web"}}}, facts)
		require.Error(t, c.Round(context.Background()))
		require.Empty(t, s.removed)
		time.Sleep(time.Minute)
		require.NoError(t, c.Round(context.Background()))
		require.Equal(t, []string{"web"}, s.removed, "nobody made anything of it")
	})
}

// Who asks for room while somebody else makes it is answered when it is there.
func TestRemovalsWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock()
		s.add("i0", 900)
		s.gate = make(chan struct{})
		_, c := s.collector(image.Rules{High: 85, Low: 80})
		time.Sleep(time.Minute)
		round, unused := make(chan error, 1), make(chan error, 1)
		go func() { round <- c.Round(t.Context()) }()
		synctest.Wait()
		go func() { unused <- c.Unused(t.Context()) }()
		synctest.Wait()
		require.Empty(t, unused, "it waits for what is under way")
		close(s.gate)
		require.NoError(t, <-round)
		require.NoError(t, <-unused)
		require.Equal(t, []string{"i0"}, s.removed)
	})
}
