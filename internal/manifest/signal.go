package manifest

import (
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// How far from SIGRTMIN and SIGRTMAX the real-time signals go.
const (
	afterRTMin  = 15
	beforeRTMax = 14
)

// stopSignal checks the signal that ends a container. What may be sent
// depends on the system, so the pod has to name it.
func (v *validator) stopSignal(signal *v1.Signal, at *field.Path) {
	if signal == nil {
		return
	}
	os := v.spec.OS
	known := isLinuxSignal(*signal)
	switch {
	case os == nil:
		v.add(field.Forbidden(at, "may not be set for containers with empty `spec.os.name`"))
		return
	case os.Name == v1.Windows:
		known = *signal == v1.SIGTERM || *signal == v1.SIGKILL
	case os.Name != v1.Linux:
		return // said elsewhere
	}
	if !known {
		v.add(field.Invalid(at, *signal, "no signal of "+string(os.Name)))
	}
}

func isLinuxSignal(signal v1.Signal) bool {
	if n, ok := strings.CutPrefix(string(signal), string(v1.SIGRTMIN)+"+"); ok {
		return isOffset(n, afterRTMin)
	}
	if n, ok := strings.CutPrefix(string(signal), string(v1.SIGRTMAX)+"-"); ok {
		return isOffset(n, beforeRTMax)
	}
	return slices.Contains([]v1.Signal{
		v1.SIGABRT, v1.SIGALRM, v1.SIGBUS, v1.SIGCHLD, v1.SIGCLD, v1.SIGCONT, v1.SIGFPE, v1.SIGHUP, v1.SIGILL, v1.SIGINT,
		v1.SIGIO, v1.SIGIOT, v1.SIGKILL, v1.SIGPIPE, v1.SIGPOLL, v1.SIGPROF, v1.SIGPWR, v1.SIGQUIT, v1.SIGRTMAX, v1.SIGRTMIN,
		v1.SIGSEGV, v1.SIGSTKFLT, v1.SIGSTOP, v1.SIGSYS, v1.SIGTERM, v1.SIGTRAP, v1.SIGTSTP, v1.SIGTTIN, v1.SIGTTOU,
		v1.SIGURG, v1.SIGUSR1, v1.SIGUSR2, v1.SIGVTALRM, v1.SIGWINCH, v1.SIGXCPU, v1.SIGXFSZ,
	}, signal)
}

// isOffset is true for a plain number from 1 to most.
func isOffset(text string, most int) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 1 && n <= most && strconv.Itoa(n) == text
}
