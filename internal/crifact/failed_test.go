package crifact_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/flowlet/flowlet/internal/crifact"
)

func TestWrittenSaysWhatIsKnown(t *testing.T) {
	require.NoError(t, crifact.Written(nil, true))
	failed := status.Error(codes.Unknown, "x")
	for _, uncertain := range []bool{true, false} {
		err := fmt.Errorf("stage: %w", crifact.Written(failed, uncertain))
		require.Equal(t, uncertain, crifact.Uncertain(err), "whatever the code says")
		require.ErrorIs(t, err, failed)
	}
}
