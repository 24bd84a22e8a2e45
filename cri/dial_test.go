package cri_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
)

func TestDialRefusesOnlyWhatMakesNoSense(t *testing.T) {
	for _, endpoint := range []string{"", "run/containerd.sock", "unix:run/x", "tcp://127.0.0.1:1", "unix://"} {
		_, err := cri.Dial(endpoint)
		require.ErrorContains(t, err, "want unix:///absolute/path", endpoint)
	}
	for _, endpoint := range []string{"/run/x.sock", "unix:///run/x.sock", "unix:/run/x.sock"} {
		c, err := cri.Dial(endpoint)
		require.NoError(t, err, endpoint)
		require.NoError(t, c.Close())
	}
}

// Real sockets, hence real time: the deadline is generous and the test ends as soon as it can.
func TestDialWaitsForARuntimeThatIsAway(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	socket := filepath.Join(t.TempDir(), "cri.sock")
	client, err := cri.Dial("unix://" + socket)
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	_, err = client.Version(ctx)
	require.True(t, cri.IsUnavailable(err), "%v", err)
	require.False(t, cri.IsUncertain(err))

	for range 2 { // it comes, goes and comes again
		serving, stop := context.WithCancel(ctx)
		lis, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- crisim.New(crisim.Config{}).Serve(serving, lis) }()
		for {
			if _, err = client.Version(ctx); err == nil {
				break
			}
			require.True(t, cri.IsUnavailable(err), "%v", err)
			time.Sleep(10 * time.Millisecond)
		}
		stop()
		require.NoError(t, <-ended)
		_, err = client.Version(ctx)
		require.True(t, cri.IsUnavailable(err), "%v", err)
	}
}
