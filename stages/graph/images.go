package graph

import (
	"context"
	"iter"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// imagesOf are the images that a container is made from: its own, and those it
// mounts as volumes; each with the policy for pulling it.
func (b *builder) imagesOf(c *v1.Container) iter.Seq2[string, v1.PullPolicy] {
	return func(yield func(string, v1.PullPolicy) bool) {
		if !yield(c.Image, c.ImagePullPolicy) {
			return
		}
		volumes := b.s.Pod().Spec.Volumes
		for i := range volumes {
			v := volumes[i].Image
			if v != nil && v.Reference != "" && uses(c, volumes[i].Name) && !yield(v.Reference, v.PullPolicy) {
				return
			}
		}
	}
}

// images are looked up and, where missing, pulled; pulls start with the pod
// and wait for nothing but the look. A container needs both stages.
func (b *builder) images(p *plan) map[string][]dag.ID {
	ids := make(map[string][]dag.ID, len(p.units))
	for i := range p.units {
		for ref := range b.imagesOf(p.units[i].spec) {
			if _, ok := ids[ref]; !ok {
				ids[ref] = b.image(p, ref)
			}
		}
	}
	return ids
}

func (b *builder) image(p *plan, ref string) []dag.ID {
	demand := p.demandOf(func(c *v1.Container) bool {
		for r := range b.imagesOf(c) {
			if r == ref {
				return true
			}
		}
		return false
	})
	policy := b.policyOf(p, ref)
	known := b.s.Images[ref]
	if demand != 0 {
		demand = demand.num(uint64(known.Epoch))
	}
	spec, s, attempt := b.s.Spec, b.s, p.attempt

	look := dag.Node[pod.Facts]{ID: dag.ID{Kind: KindImageLook, Of: ref}, Class: KindImageLook}
	pull := dag.Node[pod.Facts]{ID: dag.ID{Kind: KindImage, Of: ref}, Class: KindImage, Share: "image/" + ref}
	if b.Config.Registry != nil {
		pull.Class = KindImage + "/" + b.Config.Registry(ref)
	}
	if policy != v1.PullAlways {
		look.Key = demand.key("look up")
	}
	if demand != 0 && (policy == v1.PullAlways || known.ID == "") {
		pull.Key = demand.key("pull")
	}
	lookID := b.node(look, func(ctx context.Context) (pod.Facts, error) {
		return b.work.Images.Look(ctx, spec.Pod, ref, policy)
	})
	pull.Need = []dag.ID{lookID}
	pullID := b.node(pull, func(ctx context.Context) (pod.Facts, error) {
		cfg, err := b.work.Sandboxes.Config(s, attempt)
		if err != nil {
			return nil, err
		}
		return b.work.Images.Pull(ctx, spec.Pod, ref, cfg)
	})
	return []dag.ID{lookID, pullID}
}

// policyOf returns the strictest pull policy among those by which containers
// that are to be started want an image.
func (b *builder) policyOf(p *plan, ref string) v1.PullPolicy {
	strictest := v1.PullNever
	for i := range p.units {
		if p.units[i].do != start {
			continue
		}
		for r, policy := range b.imagesOf(p.units[i].spec) {
			switch {
			case r != ref || policy == v1.PullNever:
			case policy == v1.PullAlways:
				return v1.PullAlways
			default:
				strictest = v1.PullIfNotPresent
			}
		}
	}
	return strictest
}
