package http

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// mostTold is how many different errors in a row are logged: texts of network
// errors may differ each time.
const mostTold = 3

// told is what was logged: the errors since the last good answer, and the
// revisions whose oddities were named.
type told struct {
	failures int
	last     string
	pods     map[oddity]bool
}

// oddity is a revision of a pod and why it is not set.
type oddity struct {
	uid                types.UID
	revision, conflict string
}

// note takes the outcome of a look into the state, and logs what is new.
func (s *Source) note(ctx context.Context, err error) {
	now, st := time.Now(), *s.state.Load()
	st.Asked = now
	if err != nil {
		if st.Err == nil {
			st.ErrSince = now
		}
		st.Err = err
		s.state.Store(&st)
		s.logError(ctx, err)
		return
	}
	st.Good, st.Err, st.ErrSince, st.Pods = now, nil, time.Time{}, s.catalog.statuses()
	s.state.Store(&st)
	if s.told.failures > 0 {
		s.cfg.Log.InfoContext(ctx, "manifests from the URL are used again", "url", s.path)
	}
	s.told.failures, s.told.last = 0, ""
	s.logOdd(ctx, st.Pods)
}

func (s *Source) logError(ctx context.Context, err error) {
	text := err.Error()
	if text == s.told.last || s.told.failures >= mostTold {
		return
	}
	s.told.failures, s.told.last = s.told.failures+1, text
	s.cfg.Log.WarnContext(ctx, "manifests from the URL are not used; pods stay as they are", "url", s.path, "error", err)
}

// logOdd names the oddities of each revision once.
func (s *Source) logOdd(ctx context.Context, pods []PodStatus) {
	seen := make(map[oddity]bool, len(pods))
	for _, p := range pods {
		o := oddity{p.UID, p.Revision, p.Conflict}
		if !s.told.pods[o] {
			s.logPod(ctx, p)
		}
		seen[o] = true
	}
	s.told.pods = seen
}

func (s *Source) logPod(ctx context.Context, p PodStatus) {
	if p.Conflict != "" {
		s.cfg.Log.WarnContext(ctx, "manifest from the URL is not used", "url", s.path, "pod", p.FullName, "error", p.Conflict)
	}
	for _, w := range p.Warnings {
		s.cfg.Log.WarnContext(ctx, "manifest runs, but something in it is odd", "pod", p.FullName, "warning", w.String())
	}
}
