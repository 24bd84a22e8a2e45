package http

import (
	"context"
	"log/slog"
	nethttp "net/http"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/manifest"
)

// DefaultPeriod is the kubelet's httpCheckFrequency.
const DefaultPeriod = 20 * time.Second

// Config is what a source needs. URL and NodeName are required.
type Config struct {
	URL      string              // staticPodURL
	Header   map[string][]string // staticPodURLHeader; values are secrets
	NodeName string
	Period   time.Duration // between an answer and the next question; default DefaultPeriod

	// Runs says whether a pod of that UID is on the node already; where two
	// pods of a list have one name at first sight, such a one wins. May be nil.
	Runs func(types.UID) bool

	Log    *slog.Logger // default: silent
	Client Client       // default: one of its own, which follows redirects
}

// Source is a source of static pods. State may be called concurrently with
// Run, Run only once at a time.
type Source struct {
	cfg     Config
	path    string // the URL as it is shown
	catalog *catalog
	known   validators // of the last answer that was read
	loadErr error      // why that answer is not used
	state   atomic.Pointer[State]
	told    told
}

// New makes a source; Run starts it.
func New(cfg Config) *Source {
	if cfg.Period <= 0 {
		cfg.Period = DefaultPeriod
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	header := nethttp.Header{} // in the spelling of net/http
	for name, values := range cfg.Header {
		for _, v := range values {
			header.Add(name, v)
		}
	}
	cfg.Header = header
	if cfg.Client == nil {
		cfg.Client = newClient(header)
	}
	s := &Source{cfg: cfg, path: shown(cfg.URL)}
	s.catalog = &catalog{path: s.path, runs: cfg.Runs, active: map[types.UID]*version{}}
	s.state.Store(&State{URL: s.path})
	return s
}

// Name is the kubelet's name for this source.
func (*Source) Name() string { return manifest.SourceHTTP }

// State is what the source makes of its URL as of its last look. What it
// points to is shared.
func (s *Source) State() State {
	st := *s.state.Load()
	st.Pods = slices.Clone(st.Pods)
	return st
}

// Run emits all pods once the URL served something good, then Synced, then
// changes, until ctx ends; then it returns the cause. Run may be called again
// afterwards, and then emits all pods again. emit must not block for long:
// nothing else is seen meanwhile.
func (s *Source) Run(ctx context.Context, emit func(manifest.Update)) error {
	if c, ok := s.cfg.Client.(interface{ CloseIdleConnections() }); ok {
		defer c.CloseIdleConnections()
	}
	synced := false
	for {
		updates, err := s.look(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil && !synced {
			updates = append(slices.DeleteFunc(updates, isSet), s.catalog.again(time.Now())...)
		}
		for _, u := range updates {
			emit(u)
		}
		if err == nil && !synced {
			synced = true
			emit(manifest.Update{Kind: manifest.Synced, Seen: time.Now()})
		}
		s.note(ctx, err)
		if err := sleep(ctx, s.cfg.Period); err != nil {
			return err
		}
	}
}

func isSet(u manifest.Update) bool { return u.Kind == manifest.Set }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// look asks once. With an error nothing changes.
func (s *Source) look(ctx context.Context) ([]manifest.Update, error) {
	a, err := s.fetch(ctx, s.known)
	switch {
	case err != nil:
		return nil, err
	case a.unchanged:
		return nil, s.loadErr
	}
	now := time.Now()
	pods, err := load(s.path, a.body, manifest.Origin{
		Source: manifest.SourceHTTP, Location: s.cfg.URL, NodeName: s.cfg.NodeName, Seen: now,
	})
	s.known, s.loadErr = a.version, err
	if err != nil {
		return nil, err
	}
	return s.catalog.apply(now, pods), nil
}
