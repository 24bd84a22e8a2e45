// Package config turns what the user wrote (a KubeletConfiguration file,
// drop-ins, command line flags and a policy file) into one validated Config.
//
// Precedence, lowest first: defaults, --config, --config-dir drop-ins in the
// order of their paths, flags. Decoding is as strict as the kubelet's: an
// unknown or duplicate field is a warning with its path, everything else that
// cannot be decoded or is invalid is an error with its path. Beside the
// effective value of a field the package keeps who set it, because defaults
// that flowlet reads differently from the kubelet (parallel image pulls, the
// search for a runtime) give way to an explicit setting.
//
// Where to look: supported.go lists which fields have an effect, flagtable.go
// and gatetable.go the names of kubelet v1.37.2, defaults.go and
// policydefaults.go the numbers.
package config
