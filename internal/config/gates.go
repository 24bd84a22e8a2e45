package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/component-base/featuregate"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// gateSetter is a set of gates that can be moved without a line in klog.
type gateSetter interface {
	featuregate.MutableFeatureGate
	SetFromMapWithLogger(logr.Logger, map[string]bool) error
}

// newGates returns the feature gates of kubelet v1.37.2 at their defaults.
func newGates() gateSetter {
	specs := map[featuregate.Feature]featuregate.FeatureSpec{}
	for _, row := range gateTable() {
		for name := range strings.FieldsSeq(row.names) {
			specs[featuregate.Feature(name)] = row.spec
		}
	}
	gates := featuregate.NewFeatureGate()
	if err := gates.Add(specs); err != nil {
		panic("config: table of feature gates: " + err.Error()) // a mistake in the table; tests load it
	}
	return gates
}

// setGates fails on unknown names and on a change of a locked gate, and warns
// about every gate that was moved from its default and decides nothing here.
func (l *loaded) setGates() error {
	gates := newGates()
	defaults := gates.DeepCopy()
	if err := gates.SetFromMapWithLogger(logr.Discard(), l.kubelet.FeatureGates); err != nil {
		return fmt.Errorf("%s: featureGates: %w", l.origins["featureGates"], err)
	}
	l.gates = gates
	acting := fieldSet(gatesActing)
	for _, name := range slices.Sorted(maps.Keys(l.kubelet.FeatureGates)) {
		on := l.kubelet.FeatureGates[name]
		if f := featuregate.Feature(name); !acting[name] && on != defaults.Enabled(f) {
			l.warnings = append(l.warnings, fmt.Sprintf("%s: featureGates.%s=%t has no effect in this release", l.origins["featureGates"], name, on))
		}
	}
	return nil
}

// gateOn answers before the gates were checked: a gate that is not in the map
// has its default, which for those asked about here is on.
func gateOn(kc *kubeletconfig.KubeletConfiguration, name string) bool {
	on, set := kc.FeatureGates[name]
	return on || !set
}
