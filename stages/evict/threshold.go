package evict

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Value is a quantity, or a part of the capacity.
type Value struct {
	Quantity resource.Quantity
	Part     float64 // of 1; counts when it is not 0
}

// Of returns the value in units for a capacity.
func (v Value) Of(capacity int64) int64 {
	if v.Part != 0 {
		return int64(float64(capacity) * v.Part)
	}
	return v.Quantity.Value()
}

// Threshold is how little of a signal may be left.
type Threshold struct {
	Signal Signal
	Value  Value
	// Soft: acted on after it was met for Grace, and with the pod's own grace.
	Soft  bool
	Grace time.Duration
	// Reclaim is how much more than Value is to be free until it counts as over.
	Reclaim Value
}

// Settings are the fields of the configuration that thresholds come from.
type Settings struct {
	Hard, Soft, SoftGrace, MinimumReclaim map[string]string
	// Allocatable: pods together are limited to what is not reserved, so a hard
	// threshold for memory counts for that, too.
	Allocatable bool
}

// Thresholds returns the thresholds of a configuration. The error names every
// entry that cannot be.
func (s Settings) Thresholds() ([]Threshold, error) {
	hard, err1 := s.parse("evictionHard", s.Hard)
	soft, err2 := s.parse("evictionSoft", s.Soft)
	errs := []error{err1, err2}
	for _, name := range slices.Sorted(maps.Keys(s.SoftGrace)) {
		if err := known(name); err != nil {
			errs = append(errs, fmt.Errorf("evictionSoftGracePeriod[%s]: %w", name, err))
		}
	}
	for i := range soft {
		text, ok := s.SoftGrace[string(soft[i].Signal)]
		grace, err := time.ParseDuration(text)
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("evictionSoft[%s]: needs evictionSoftGracePeriod[%[1]s]", soft[i].Signal))
		case err != nil || grace < 0:
			errs = append(errs, fmt.Errorf("evictionSoftGracePeriod[%s]: %q is no duration of 0 or more, such as 90s", soft[i].Signal, text))
		}
		soft[i].Soft, soft[i].Grace = true, grace
	}
	all := append(hard, soft...)
	for _, name := range slices.Sorted(maps.Keys(s.MinimumReclaim)) {
		v, err := parseValue(s.MinimumReclaim[name], true)
		if err == nil {
			err = known(name)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("evictionMinimumReclaim[%s]: %w", name, err))
		}
		for i := range all {
			if string(all[i].Signal) == name {
				all[i].Reclaim = v
			}
		}
	}
	if s.Allocatable {
		all = append(all, allocatable(hard)...)
	}
	return all, errors.Join(errs...)
}

func allocatable(hard []Threshold) []Threshold {
	for _, t := range hard {
		if t.Signal == MemoryAvailable {
			t.Signal = AllocatableMemoryAvailable
			return []Threshold{t}
		}
	}
	return nil
}

func (s Settings) parse(field string, entries map[string]string) ([]Threshold, error) {
	var out []Threshold
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		text := strings.TrimSpace(entries[name])
		if err := known(name); err != nil {
			errs = append(errs, fmt.Errorf("%s[%s]: %w", field, name, err))
			continue
		}
		if text == "0%" || text == "100%" {
			continue // switched off
		}
		v, err := parseValue(text, false)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s[%s]: %w", field, name, err))
		case !inert(Signal(name)):
			out = append(out, Threshold{Signal: Signal(name), Value: v})
		}
	}
	return out, errors.Join(errs...)
}

func known(name string) error {
	if _, ok := meaning(Signal(name)); ok || inert(Signal(name)) {
		return nil
	}
	return errors.New("there is no such signal; there are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available")
}

func parseValue(text string, zero bool) (Value, error) {
	text = strings.TrimSpace(text)
	if number, ok := strings.CutSuffix(text, "%"); ok {
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n >= 0 && n <= 100) {
			return Value{}, fmt.Errorf("%q is not between 0%% and 100%%", text)
		}
		return Value{Part: n / 100}, nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return Value{}, fmt.Errorf("%q is neither a quantity such as 100Mi nor a part such as 10%%", text)
	}
	if q.Sign() < 0 || q.Sign() == 0 && !zero {
		return Value{}, fmt.Errorf("%q must be more than 0", text)
	}
	return Value{Quantity: q}, nil
}
