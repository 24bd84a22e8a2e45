package cri

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// MaxMessage is the largest message in bytes that Dial accepts from a runtime (16 MiB, as in the kubelet).
const MaxMessage = 16 << 20

// Dial returns a client of the runtime at endpoint: a unix socket, as "unix:///run/containerd/containerd.sock" or as an
// absolute path. It does not connect and so never fails because the runtime is away: calls then return Unavailable at
// once, and the connection is tried again in the background. The only error is an endpoint that makes no sense.
// The caller closes the client.
func Dial(endpoint string, opts ...Option) (*Client, error) {
	target, err := unixTarget(endpoint)
	if err != nil {
		return nil, err
	}
	s := newSettings(opts)
	conn, err := grpc.NewClient(target, append(DialOptions(), s.dial...)...)
	if err != nil {
		return nil, fmt.Errorf("container runtime endpoint %q: %w", endpoint, err)
	}
	c := newClient(conn, s)
	c.close = conn.Close
	return c, nil
}

// DialOptions are those of Dial, for callers that make the connection themselves: no transport security (the socket's
// file mode protects it), MaxMessage, and reconnection after 100 ms growing to 3 s, so that a runtime that comes back is
// seen soon and one that stays away costs nothing.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
			MinConnectTimeout: 10 * time.Second,
		}),
		grpc.WithDisableServiceConfig(),
	}
}

func unixTarget(endpoint string) (string, error) {
	path := strings.TrimPrefix(strings.TrimPrefix(endpoint, "unix:"), "//")
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("container runtime endpoint %q: want unix:///absolute/path/of.sock", endpoint)
	}
	return "unix://" + path, nil
}
