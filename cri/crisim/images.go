package crisim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/distribution/reference"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const defaultImageSize = 10 << 20

// images are those present, found by ID, tag or digest. Guarded by Runtime.mu.
type images struct {
	scripts map[string]Image  // by normalised reference
	byRef   map[string]*image // ID, tags and digests
	order   []*image
	normal  map[string]string // normalised forms of references looked up; empty for what is none
}

type image struct {
	id       string
	tags     []string
	digests  []string
	size     uint64
	uid      *int64
	username string
	pinned   bool
}

func newImages(scripted map[string]Image) images {
	s := images{scripts: map[string]Image{}, byRef: map[string]*image{}, normal: map[string]string{}}
	for _, ref := range slices.Sorted(maps.Keys(scripted)) {
		named, err := reference.ParseDockerRef(ref)
		if err != nil {
			panic(fmt.Sprintf("crisim: Config.Images: %q: %v", ref, err))
		}
		s.scripts[named.String()] = scripted[ref]
		if scripted[ref].Present {
			s.add(named)
		}
	}
	return s
}

// add makes the image of a reference present; references with one digest are one image.
func (s *images) add(named reference.Named) *image {
	script := s.scripts[named.String()]
	digest := script.Digest
	if d, ok := named.(reference.Digested); ok {
		digest = d.Digest().String()
	}
	if digest == "" {
		digest = sum(named.String())
	}
	id := sum("config of " + digest)
	img := s.byRef[id]
	if img == nil {
		img = &image{id: id, size: script.Size, pinned: script.Pinned}
		if img.size == 0 {
			img.size = defaultImageSize
		}
		img.setUser(script.User)
		s.byRef[id] = img
		s.order = append(s.order, img)
	}
	s.name(img, &img.digests, named.Name()+"@"+digest)
	if t, ok := named.(reference.Tagged); ok {
		s.untag(named.String())
		s.name(img, &img.tags, named.Name()+":"+t.Tag())
	}
	return img
}

func (s *images) name(img *image, list *[]string, ref string) {
	if !slices.Contains(*list, ref) {
		*list = append(*list, ref)
	}
	s.byRef[ref] = img
}

// untag takes a tag from the image that has it: a tag names one image.
func (s *images) untag(tag string) {
	if old := s.byRef[tag]; old != nil {
		old.tags = slices.DeleteFunc(old.tags, func(t string) bool { return t == tag })
		delete(s.byRef, tag)
	}
}

// find resolves an ID, with or without "sha256:", or a reference; nil when there is no such image.
func (s *images) find(ref string) *image {
	if img := s.byRef[ref]; img != nil {
		return img
	}
	if img := s.byRef["sha256:"+ref]; img != nil {
		return img
	}
	return s.byRef[s.normalise(ref)]
}

// normalise remembers its answers: parsing costs more than everything else in a call.
func (s *images) normalise(ref string) string {
	n, ok := s.normal[ref]
	if !ok {
		if named, err := reference.ParseDockerRef(ref); err == nil {
			n = named.String()
		}
		s.normal[ref] = n
	}
	return n
}

func (s *images) remove(img *image) {
	for _, ref := range append(append([]string{img.id}, img.tags...), img.digests...) {
		delete(s.byRef, ref)
	}
	s.order = slices.DeleteFunc(s.order, func(o *image) bool { return o == img })
}

func (img *image) setUser(user string) {
	user, _, _ = strings.Cut(user, ":")
	if user == "" {
		return
	}
	if n, err := strconv.ParseInt(user, 10, 64); err == nil {
		img.uid = &n
		return
	}
	img.username = user
}

// name is what ContainerStatus shows as the image, ref what it shows as its reference.
func (img *image) name() string { return firstOr(img.tags, img.id) }
func (img *image) ref() string  { return firstOr(img.digests, img.id) }

func (img *image) message() *runtimeapi.Image {
	m := &runtimeapi.Image{
		Id: img.id, RepoTags: slices.Clone(img.tags), RepoDigests: slices.Clone(img.digests),
		Size: img.size, Username: img.username, Pinned: img.pinned,
	}
	if img.uid != nil {
		m.Uid = &runtimeapi.Int64Value{Value: *img.uid}
	}
	return m
}

func firstOr(list []string, otherwise string) string {
	if len(list) > 0 {
		return list[0]
	}
	return otherwise
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(h[:])
}
