package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/flowlet/flowlet/dag"
)

// defaultClass is the name in the file of the row for classes without one.
const defaultClass = "default"

// policyFile is the file that --policy names. What a row leaves out keeps its
// default; a row for a class that has none starts from the default row, one
// for "image/REGISTRY" from the row "image".
type policyFile struct {
	Classes map[string]policyRow `json:"classes"`
}

type policyRow struct {
	Slots    *int           `json:"slots"`    // 0: no limit
	Order    *string        `json:"order"`    // fifo or priority
	Deadline *string        `json:"deadline"` // of one run; 0s: none
	Grace    *string        `json:"grace"`    // after the deadline until the run counts as lost
	Backoff  *policyBackoff `json:"backoff"`
	MaxLost  *int           `json:"maxLost"` // 0: no limit
}

type policyBackoff struct {
	Initial *string  `json:"initial"`
	Max     *string  `json:"max"`
	Factor  *float64 `json:"factor"`
	Jitter  *float64 `json:"jitter"`
}

// loadPolicy lays the policy file over the defaults.
func (c *Config) loadPolicy() (dag.Policy, error) {
	base := c.defaultPolicy(runtime.GOMAXPROCS(0))
	if c.PolicyFile == "" {
		return base, nil
	}
	data, err := os.ReadFile(c.PolicyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the policy file: %w", err)
	}
	return decodePolicy(c.PolicyFile, data, base)
}

// ReloadPolicy reads the policy file again and returns the rows to use from
// now on. On an error the old ones stay in use.
func (c *Config) ReloadPolicy() (dag.Policy, error) { return c.loadPolicy() }

func decodePolicy(file string, data []byte, base dag.Policy) (dag.Policy, error) {
	data, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var pf policyFile
	strict, err := kjson.UnmarshalStrict(data, &pf)
	if err != nil {
		return nil, explainPolicy(file, data, err)
	}
	if len(strict) > 0 {
		return nil, fmt.Errorf("%s: %w", file, errors.Join(strict...))
	}
	out := maps.Clone(base)
	w := &policyErrors{file: file}
	for _, name := range slices.Sorted(maps.Keys(pf.Classes)) {
		class := name
		if class == defaultClass {
			class = ""
		}
		out[class] = pf.Classes[name].over(inherited(base, class), w.at("classes."+name))
	}
	return out, errors.Join(w.errs...)
}

// explainPolicy names the rows that cannot be decoded.
func explainPolicy(file string, data []byte, cause error) error {
	var loose struct {
		Classes map[string]json.RawMessage `json:"classes"`
	}
	var errs []error
	if err := json.Unmarshal(data, &loose); err == nil {
		for _, name := range slices.Sorted(maps.Keys(loose.Classes)) {
			if _, err := kjson.UnmarshalStrict(loose.Classes[name], &policyRow{}); err != nil {
				errs = append(errs, fmt.Errorf("%s: classes.%s: %w", file, name, err))
			}
		}
	}
	if len(errs) == 0 {
		return fmt.Errorf("%s: %w", file, cause)
	}
	return errors.Join(errs...)
}

// inherited is the row that a class has without the file.
func inherited(base dag.Policy, class string) dag.Class {
	if row, ok := base[class]; ok {
		return row
	}
	group, _, _ := strings.Cut(class, "/")
	if row, ok := base[group]; ok {
		return row
	}
	return base[""]
}

type policyErrors struct {
	file string
	path string
	errs []error
	root *policyErrors
}

func (w *policyErrors) at(path string) *policyErrors {
	return &policyErrors{file: w.file, path: path, root: w}
}

func (w *policyErrors) check(ok bool, name string, value any, want string) {
	if !ok {
		w.root.errs = append(w.root.errs, fmt.Errorf("%s: %s.%s: %v: %s", w.file, w.path, name, value, want))
	}
}

func (w *policyErrors) duration(name string, text *string, to *time.Duration) {
	if text == nil {
		return
	}
	d, err := time.ParseDuration(*text)
	w.check(err == nil && d >= 0, name, *text, "must be a duration such as 500ms or 2m, not negative")
	*to = d
}

func (r policyRow) over(c dag.Class, w *policyErrors) dag.Class {
	if r.Slots != nil {
		w.check(*r.Slots >= 0, "slots", *r.Slots, "must be 0 (no limit) or more")
		c.Slots = *r.Slots
	}
	if r.MaxLost != nil {
		w.check(*r.MaxLost >= 0, "maxLost", *r.MaxLost, "must be 0 (no limit) or more")
		c.MaxLost = *r.MaxLost
	}
	if r.Order != nil {
		c.Order = dag.Order(*r.Order)
		w.check(c.Order == dag.ByArrival || c.Order == dag.ByPriority, "order", *r.Order, "must be fifo or priority")
	}
	w.duration("deadline", r.Deadline, &c.Deadline)
	w.duration("grace", r.Grace, &c.Grace)
	if b := r.Backoff; b != nil {
		w.duration("backoff.initial", b.Initial, &c.Backoff.Initial)
		w.duration("backoff.max", b.Max, &c.Backoff.Max)
		if b.Factor != nil {
			w.check(*b.Factor >= 1, "backoff.factor", *b.Factor, "must be 1 or more")
			c.Backoff.Factor = *b.Factor
		}
		if b.Jitter != nil {
			w.check(*b.Jitter >= 0 && *b.Jitter <= 1, "backoff.jitter", *b.Jitter, "must be between 0 and 1")
			c.Backoff.Jitter = *b.Jitter
		}
		w.check(c.Backoff.Initial <= c.Backoff.Max, "backoff.initial", c.Backoff.Initial, fmt.Sprintf("may not be more than backoff.max, which is %v", c.Backoff.Max))
	}
	return c
}
