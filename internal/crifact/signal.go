package crifact

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Signal returns a stop signal as the runtime is told it; an unknown one is
// the runtime's default, which is what the image says.
func Signal(s v1.Signal) runtimeapi.Signal {
	name := "SIGNAL_" + strings.NewReplacer("-", "MINUS", "+", "PLUS").Replace(string(s))
	return runtimeapi.Signal(runtimeapi.Signal_value[name])
}

// SignalName returns the API's name of a stop signal; "" for a runtime that
// does not tell.
func SignalName(s runtimeapi.Signal) v1.Signal {
	if s == runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		return ""
	}
	name := strings.TrimPrefix(runtimeapi.Signal_name[int32(s)], "SIGNAL_")
	return v1.Signal(strings.NewReplacer("MINUS", "-", "PLUS", "+").Replace(name))
}
