package cri_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/flowlet/flowlet/cri/crisim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// simulate gives body a simulated runtime and a connection to it, in virtual time.
func simulate(t *testing.T, cfg crisim.Config, body func(t *testing.T, sim *crisim.Runtime, conn *grpc.ClientConn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		sim := crisim.New(cfg)
		ended := make(chan error, 1)
		go func() { ended <- sim.Run(ctx) }()
		conn := sim.Conn()
		defer func() {
			require.NoError(t, conn.Close())
			cancel()
			require.NoError(t, <-ended)
		}()
		body(t, sim, conn)
	})
}

// fake is a connection that answers by itself.
type fake struct {
	grpc.ClientConnInterface // no streams
	answer                   func(ctx context.Context, method string, req proto.Message) error
}

func (f fake) Invoke(ctx context.Context, method string, args, _ any, _ ...grpc.CallOption) error {
	return f.answer(ctx, method, args.(proto.Message))
}
