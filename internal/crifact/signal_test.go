package crifact_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/crifact"
)

func TestSignals(t *testing.T) {
	for name, signal := range map[v1.Signal]runtimeapi.Signal{
		v1.SIGTERM: runtimeapi.Signal_SIGNAL_SIGTERM, v1.SIGUSR1: runtimeapi.Signal_SIGNAL_SIGUSR1,
		v1.SIGRTMINPLUS3: runtimeapi.Signal_SIGNAL_SIGRTMINPLUS3, v1.SIGRTMAXMINUS2: runtimeapi.Signal_SIGNAL_SIGRTMAXMINUS2,
	} {
		require.Equal(t, signal, crifact.Signal(name))
		require.Equal(t, name, crifact.SignalName(signal))
	}
	require.Equal(t, runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT, crifact.Signal("SIGNONE"))
	require.Empty(t, crifact.SignalName(runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT))
	for number := range runtimeapi.Signal_name {
		s := runtimeapi.Signal(number)
		require.Equal(t, s, crifact.Signal(crifact.SignalName(s)), "there and back")
	}
}
