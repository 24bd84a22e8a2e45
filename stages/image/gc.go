package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/usage"
)

// Stock is what a Collector needs of the runtime.
type Stock interface {
	ListImages(ctx context.Context) ([]*runtimeapi.Image, error)
	// ListContainers returns the containers that match, running or not; nil
	// means all.
	ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error)
	// RemoveImage removes an image with all its names; one that is not there
	// is success.
	RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error
}

// Rules say when images are removed. Zero ages do not count.
type Rules struct {
	High, Low int           // percent of the file system: above High images are removed, down to Low; High 100: never
	MinAge    time.Duration // younger images stay (imageMinimumGCAge)
	MaxAge    time.Duration // images unused for longer go (imageMaximumGCAge)
}

// CollectorConfig is what a Collector is made of.
type CollectorConfig struct {
	Rules Rules
	Stock Stock
	// Space measures the file system that images are on.
	Space func(ctx context.Context) (usage.Filesystem, error)
	// Wanted returns the IDs of the images that pods of this node want, whether
	// or not they have a container of it yet.
	Wanted func() map[string]bool
	// Tell records an event about the node, a warning.
	Tell func(reason, message string)
}

// Collector removes images that nothing uses. Its methods may be called
// concurrently.
type Collector struct {
	CollectorConfig
	images  *Images
	started time.Time
	// turn is held by who removes: others wait, since what is just being removed
	// is not gone yet, and who looked at the space meanwhile would miss it.
	turn *semaphore.Weighted

	mu     sync.Mutex
	known  map[string]sight // by ID
	looked bool             // once at least
	failed bool             // the last round
}

// sight is when an image was seen.
type sight struct{ first, used time.Time }

// Collector returns what removes images that are used by nobody, and never one
// that i has just told a pod of.
func (i *Images) Collector(c CollectorConfig) *Collector {
	return &Collector{CollectorConfig: c, images: i, started: time.Now(), turn: semaphore.NewWeighted(1), known: map[string]sight{}}
}

// Round looks at what is used, removes what is too old, and makes room when
// the file system is too full.
func (c *Collector) Round(ctx context.Context) error {
	err := c.round(ctx)
	c.mu.Lock()
	again := c.failed && err != nil
	c.failed = err != nil
	c.mu.Unlock()
	if again { // the first failure may come from a runtime that has just started
		c.Tell("ImageGCFailed", err.Error())
	}
	return err
}

func (c *Collector) round(ctx context.Context) error {
	if c.Rules.High >= 100 && c.Rules.MaxAge == 0 {
		return nil
	}
	if err := c.turn.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	defer c.turn.Release(1)
	now := time.Now()
	unused, err := c.look(ctx, now)
	if err != nil {
		return err
	}
	unused, err = c.removeOld(ctx, now, unused)
	return errors.Join(err, c.makeRoom(ctx, now, unused))
}

// makeRoom removes images when the file system is too full.
func (c *Collector) makeRoom(ctx context.Context, now time.Time, unused []candidate) error {
	space, err := c.Space(ctx)
	if err != nil {
		return err
	}
	if space.Bytes.Capacity <= 0 {
		err := errors.New("invalid capacity 0 on image filesystem")
		c.Tell("InvalidDiskCapacity", err.Error())
		return err
	}
	short := c.Rules.short(space.Bytes)
	if short <= 0 {
		return nil
	}
	freed, err := c.free(ctx, now, unused, short)
	if err == nil && freed < short {
		//lint:ignore ST1005 the ecosystem's sentence, shown as it is
		err = fmt.Errorf("Failed to garbage collect required amount of images. Attempted to free %d bytes, but only found %d bytes eligible to free.", short, freed)
		c.Tell("FreeDiskSpaceFailed", err.Error())
	}
	return err
}

// short returns how many bytes are to be freed.
func (r Rules) short(a usage.Amount) int64 {
	used := 100 - a.Available*100/a.Capacity
	if r.High >= 100 || used < int64(r.High) {
		return 0
	}
	return a.Capacity*int64(100-r.Low)/100 - a.Available
}

// Unused removes every image that may go, for a node that is short of space.
func (c *Collector) Unused(ctx context.Context) error {
	if err := c.turn.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	defer c.turn.Release(1)
	now := time.Now()
	unused, err := c.look(ctx, now)
	if err != nil {
		return err
	}
	_, err = c.free(ctx, now, unused, math.MaxInt64)
	return err
}

// candidate is an image that nothing uses.
type candidate struct {
	id   string
	size int64
	sight
}

// look lists images and containers, notes what is used, and returns what is
// not, the one to go first first: the least recently used, then the first seen.
// Images that were there at the first look have been there for ever.
func (c *Collector) look(ctx context.Context, now time.Time) ([]candidate, error) {
	images, err := c.Stock.ListImages(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	containers, err := c.Stock.ListContainers(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("listing containers for the images that they use: %w", err)
	}
	used := c.Wanted()
	for _, k := range containers {
		for _, name := range [...]string{k.GetImageId(), k.GetImageRef(), k.GetImage().GetImage()} {
			used[name] = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := make(map[string]sight, len(images))
	var out []candidate
	for _, img := range images {
		s, was := c.known[img.GetId()]
		if !was && c.looked {
			s.first = now
		}
		inUse := img.GetPinned() || anyOf(used, img)
		if inUse {
			s.used = now
		} else {
			out = append(out, candidate{img.GetId(), int64(img.GetSize()), s}) //nolint:gosec // bytes of this machine
		}
		known[img.GetId()] = s
	}
	c.known, c.looked = known, true
	slices.SortFunc(out, func(a, b candidate) int {
		return cmp.Or(a.used.Compare(b.used), a.first.Compare(b.first), cmp.Compare(a.id, b.id))
	})
	return out, nil
}

func anyOf(used map[string]bool, img *runtimeapi.Image) bool {
	if used[img.GetId()] {
		return true
	}
	isUsed := func(name string) bool { return used[name] }
	return slices.ContainsFunc(img.GetRepoTags(), isUsed) || slices.ContainsFunc(img.GetRepoDigests(), isUsed)
}

// removeOld removes what was unused for longer than MaxAge, and returns what
// is left. An agent that is younger than that cannot know. An image that cannot
// be removed does not keep the others, and is not tried again in this round.
func (c *Collector) removeOld(ctx context.Context, now time.Time, unused []candidate) (left []candidate, _ error) {
	if c.Rules.MaxAge <= 0 || now.Sub(c.started) <= c.Rules.MaxAge {
		return unused, nil
	}
	var errs []error
	for _, img := range unused {
		since := img.used
		if since.IsZero() {
			since = img.first
		}
		if now.Sub(since) <= c.Rules.MaxAge || now.Sub(img.first) < c.Rules.MinAge {
			left = append(left, img)
			continue
		}
		did, err := c.remove(ctx, img)
		errs = append(errs, err)
		if !did {
			left = append(left, img)
		}
	}
	return left, errors.Join(errs...)
}

// free removes images until that many bytes are free. An image that cannot be
// removed does not keep the others.
func (c *Collector) free(ctx context.Context, now time.Time, unused []candidate, bytes int64) (freed int64, _ error) {
	var errs []error
	for _, img := range unused {
		if freed >= bytes {
			break
		}
		if now.Sub(img.first) < c.Rules.MinAge {
			continue
		}
		did, err := c.remove(ctx, img)
		errs = append(errs, err)
		if did && err == nil {
			freed += img.size
		}
	}
	return freed, errors.Join(errs...)
}

func (c *Collector) remove(ctx context.Context, img candidate) (did bool, _ error) {
	return c.images.guard.remove(img.id, func() error {
		if err := c.Stock.RemoveImage(ctx, &runtimeapi.ImageSpec{Image: img.id}); err != nil {
			return fmt.Errorf("removing image %s: %w", img.id, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.known, img.id)
		return nil
	})
}
