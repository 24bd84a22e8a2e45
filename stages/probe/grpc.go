package probe

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/flowlet/flowlet/internal/nodehttp"
)

// grpc asks a server for its health. It is waited for until the timeout, as a
// server that is just starting may yet come.
func (p *Prober) grpc(ctx context.Context, t Target) (Outcome, string, error) {
	host, err := t.host()
	if err != nil {
		return None, "", err
	}
	address := net.JoinHostPort(host, strconv.Itoa(int(t.Probe.GRPC.Port)))
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUserAgent(p.agent()),
		grpc.WithNoProxy(),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return nodehttp.Dialer().DialContext(ctx, "tcp", address)
		}))
	if err != nil {
		return None, "", fmt.Errorf("probing container %s: %w", t.Container.Name, err)
	}
	defer func() { _ = conn.Close() }()

	ctx, cancel := context.WithTimeoutCause(ctx, t.timeout(), context.DeadlineExceeded)
	defer cancel()
	service := ""
	if t.Probe.GRPC.Service != nil {
		service = *t.Probe.GRPC.Service
	}
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx,
		&grpc_health_v1.HealthCheckRequest{Service: service}, grpc.WaitForReady(true))
	if err != nil {
		connected := conn.GetState() == connectivity.Ready
		return Failure, grpcFailure(err, call{connected, address, t.timeout()}), nil
	}
	if s := answer.GetStatus(); s != grpc_health_v1.HealthCheckResponse_SERVING {
		return Failure, fmt.Sprintf("service unhealthy (responded with %q)", s), nil
	}
	return Success, "service healthy", nil
}

type call struct {
	connected bool
	address   string
	timeout   time.Duration
}

func grpcFailure(err error, c call) string {
	switch code := status.Code(err); {
	case code == codes.Unimplemented:
		return fmt.Sprintf("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", status.Convert(err).Message())
	case code == codes.DeadlineExceeded && !c.connected:
		return fmt.Sprintf("timeout: failed to connect service %q within %s: %s", c.address, c.timeout, status.Convert(err).Message())
	case code == codes.DeadlineExceeded:
		return fmt.Sprintf("timeout: health rpc did not complete within %s", c.timeout)
	}
	return fmt.Sprintf("error: health rpc probe failed: %s", err)
}
