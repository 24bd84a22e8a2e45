package app

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/manifest"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
)

// plan says what a manifest at that path would make happen, or with nil data
// its removal: what ends of the pod that the path stands for now, and what
// would be done for the pod that it would stand for.
func (d *daemon) plan(path string, data []byte) (explain.Plans, error) {
	now := time.Now()
	p := explain.Plans{Schema: explain.PlansSchema, Pods: []explain.PodPlan{}}
	old, has := d.atPath(path)
	if data == nil {
		if !has {
			return p, fmt.Errorf("no pod comes from %s: `flowlet get pod POD` names a pod's manifest", path)
		}
		p.Pods = append(p.Pods, d.ends(now, old))
		return p, nil
	}
	static, err := manifest.Load(path, data, manifest.Origin{Location: path, Source: manifest.SourceFile, NodeName: d.config.NodeName, Seen: now})
	if err != nil {
		return p, err
	}
	for _, w := range static.Warnings {
		p.Notes = append(p.Notes, w.String())
	}
	p.Notes = append(p.Notes, d.doubts(path, static)...)
	if has && old.State.UID() != static.Pod.UID {
		p.Pods = append(p.Pods, d.ends(now, old))
	}
	p.Pods = append(p.Pods, d.begins(now, path, static))
	return p, nil
}

// atPath returns the pod that a manifest stands for now.
func (d *daemon) atPath(path string) (podstore.View, bool) {
	for _, v := range d.agent.Store.All() {
		if s := v.State; s.Spec != nil && s.Spec.Path == path && s.Removal == nil {
			return v, true
		}
	}
	return podstore.View{}, false
}

func (d *daemon) ends(now time.Time, v podstore.View) explain.PodPlan {
	next, _ := pod.Fold(v.State, pod.SpecGone{Source: manifest.SourceFile, At: now})
	return d.podPlan(now, next, "ends")
}

func (d *daemon) begins(now time.Time, path string, static *manifest.Static) explain.PodPlan {
	set := pod.SpecSet{Spec: &pod.Spec{Pod: static.Pod, Source: manifest.SourceFile, Path: path, Seen: now, Sum: sum(static.Revision)}}
	state, change := d.agent.state(pod.KeyOf(static.Pod.UID)), "goes on"
	if state == nil {
		change = "starts"
	}
	next, _ := pod.Fold(state, set)
	return d.podPlan(now, next, change)
}

func (d *daemon) podPlan(now time.Time, s *pod.State, change string) explain.PodPlan {
	k := pod.KeyOf(s.UID())
	return explain.PodPlan{
		Pod: s.Identity.Namespace + "/" + s.Identity.Name, UID: string(s.UID()), Change: change,
		Plan: explain.PlanOf(now, d.agent.Engine.Memo(k), d.agent.domain.Look(now, s)),
	}
}

// doubts are reasons why the manifest would not be used at that path.
func (d *daemon) doubts(path string, static *manifest.Static) []string {
	var out []string
	dir := d.config.Kubelet.StaticPodPath
	switch {
	case dir == "":
		out = append(out, "this agent has no staticPodPath: no manifest is read")
	case path != dir && filepath.Dir(path) != dir:
		out = append(out, fmt.Sprintf("%s is not in staticPodPath %s: this is what it would do if that directory were read too", path, dir))
	}
	for _, v := range d.agent.Store.All() {
		s := v.State
		if s.Spec == nil || s.Removal != nil || s.Spec.Path == path {
			continue
		}
		if s.Identity.Namespace == static.Pod.Namespace && s.Identity.Name == static.Pod.Name {
			out = append(out, fmt.Sprintf("pod %s/%s is already defined by %s: as long as that is so, this manifest is not used",
				s.Identity.Namespace, s.Identity.Name, strings.TrimSpace(s.Spec.Path)))
		}
	}
	return out
}
