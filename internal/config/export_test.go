package config

import (
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/flowlet/flowlet/dag"
)

// Seams for tests of the pure parts.
var (
	FieldPaths    = fieldPaths
	FieldSet      = fieldSet
	DefaultPolicy = defaultPolicy
	DecodePolicy  = decodePolicy
	MergePatch    = mergePatch
)

const (
	FieldsActing = fieldsActing
	FieldsInert  = fieldsInert
	FieldsNotYet = fieldsNotYet
	PathFields   = pathFields
	GatesActing  = gatesActing
)

// Decode decodes one file and returns its warnings.
func Decode(file string, data []byte) ([]string, error) {
	d, err := decodeDocument(file, data)
	if err != nil {
		return nil, err
	}
	return d.warnings, nil
}

// Defaults returns the defaulted empty configuration, as read from a file.
func Defaults() *kubeletconfig.KubeletConfiguration {
	kc := &kubeletconfig.KubeletConfiguration{}
	setDefaults(kc)
	setDefaultEviction(kc)
	return kc
}

// FlagPaths lists the fields that flags set.
func FlagPaths() []string {
	var out []string
	for _, row := range flagTable() {
		if row.path != "" {
			out = append(out, row.path)
		}
	}
	return out
}

// GateNames lists all feature gates, with repetitions if there are any.
func GateNames() [][]string {
	var out [][]string
	for _, row := range gateTable() {
		var names []string
		for name := range fieldSet(row.names) {
			names = append(names, name)
		}
		out = append(out, names)
	}
	return out
}

// DefaultClassPolicy is what a policy file is laid over in tests.
func DefaultClassPolicy() dag.Policy { return defaultPolicy(2) }
