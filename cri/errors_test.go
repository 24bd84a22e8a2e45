package cri_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
)

func TestClassify(t *testing.T) {
	const taken = `failed to reserve sandbox name "a_b_c_0": name "a_b_c_0" is reserved for "4711"`
	for name, tc := range map[string]struct {
		err       error
		class     cri.Class
		uncertain bool
	}{
		"none":                       {nil, cri.OK, false},
		"not found":                  {status.Error(codes.NotFound, "x"), cri.NotFound, false},
		"exists":                     {status.Error(codes.AlreadyExists, "x"), cri.AlreadyExists, false},
		"name taken, containerd 1.6": {status.Error(codes.Unknown, taken), cri.AlreadyExists, false},
		"name taken, containerd 2":   {status.Error(codes.FailedPrecondition, taken), cri.AlreadyExists, false},
		"name taken, CRI-O":          {status.Error(codes.Unknown, "pod sandbox with name k8s_web already exists: name is reserved"), cri.AlreadyExists, false},
		"no such method":             {status.Error(codes.Unimplemented, "x"), cri.Unimplemented, false},
		"no connection":              {status.Error(codes.Unavailable, "x"), cri.Unavailable, true},
		"late":                       {status.Error(codes.DeadlineExceeded, "x"), cri.Deadline, true},
		"late, bare":                 {fmt.Errorf("y: %w", context.DeadlineExceeded), cri.Deadline, true},
		"given up":                   {status.Error(codes.Canceled, "x"), cri.Cancelled, true},
		"given up, bare":             {context.Canceled, cri.Cancelled, true},
		"no precise answer":          {status.Error(codes.Unknown, "x"), cri.Failed, true},
		"inside":                     {status.Error(codes.Internal, "x"), cri.Failed, true},
		"no gRPC error":              {errors.New("x"), cri.Failed, true},
		"bad argument":               {status.Error(codes.InvalidArgument, "x"), cri.Refused, false},
		"not now":                    {status.Error(codes.FailedPrecondition, "x"), cri.Refused, false},
		"too large":                  {status.Error(codes.ResourceExhausted, "x"), cri.Refused, false},
	} {
		t.Run(name, func(t *testing.T) {
			for form, err := range map[string]error{"bare": tc.err, "wrapped": fmt.Errorf("start: %w", tc.err)} {
				if tc.err == nil {
					err = nil
				}
				require.Equal(t, tc.class, cri.Classify(err), form)
				require.Equal(t, tc.uncertain, cri.IsUncertain(err), form)
			}
			require.NotEqual(t, "unknown", tc.class.String())
		})
	}
}

func TestReservedFor(t *testing.T) {
	id, ok := cri.ReservedFor(status.Error(codes.Unknown, `name "n" is reserved for "4711"`))
	require.True(t, ok)
	require.Equal(t, "4711", id)
	for _, err := range []error{nil, status.Error(codes.AlreadyExists, "x"), errors.New("is reserved"), status.Error(codes.Unknown, `is reserved for ""`)} {
		_, ok := cri.ReservedFor(err)
		require.False(t, ok, "%v", err)
	}
}

func TestUnsupportedIsAFact(t *testing.T) {
	simulate(t, crisim.Containerd16(crisim.Config{}), func(t *testing.T, _ *crisim.Runtime, conn *grpc.ClientConn) {
		client := cri.New(conn)
		_, err := client.RuntimeConfig(t.Context())
		require.ErrorIs(t, err, cri.ErrUnsupported)
		require.EqualError(t, err, "RuntimeConfig: not supported by this container runtime")
		err = client.GetContainerEvents(t.Context(), nil)
		require.ErrorIs(t, err, cri.ErrUnsupported)
	})
}

func TestUnreachableIsNotUncertain(t *testing.T) {
	simulate(t, crisim.Config{}, func(t *testing.T, sim *crisim.Runtime, conn *grpc.ClientConn) {
		client := cri.New(conn)
		sim.Down()
		time.Sleep(time.Minute)
		synctest.Wait()
		_, err := client.RunPodSandbox(t.Context(), config, "")
		require.True(t, cri.IsUnavailable(err), "%v", err)
		require.False(t, cri.IsUncertain(err), "%v", err)
		require.ErrorContains(t, err, "RunPodSandbox default/web: container runtime is not reachable: ")
	})
}

func TestBrokenUnderWayIsUncertain(t *testing.T) {
	cfg := crisim.Config{Latency: map[string]crisim.Latency{"RunPodSandbox": crisim.Fixed(time.Hour)}}
	simulate(t, cfg, func(t *testing.T, sim *crisim.Runtime, conn *grpc.ClientConn) {
		client := cri.New(conn)
		for name, tc := range map[string]struct {
			end   func(cancel context.CancelCauseFunc)
			class cri.Class
			text  string
		}{
			"restart":  {func(context.CancelCauseFunc) { sim.Restart() }, cri.Unavailable, "error reading from server: EOF"},
			"given up": {func(cancel context.CancelCauseFunc) { cancel(errors.New("pod was deleted")) }, cri.Cancelled, "pod was deleted"},
			"deadline": {func(context.CancelCauseFunc) {}, cri.Deadline, "no answer from the container runtime within 4m0s"},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Minute, func() { tc.end(cancel) })
			_, err := client.RunPodSandbox(ctx, config, "")
			require.EqualError(t, err, "RunPodSandbox default/web: "+tc.text, name)
			require.Equal(t, tc.class, cri.Classify(err), name)
			require.True(t, cri.IsUncertain(err), name)
			require.Equal(t, tc.class == cri.Deadline, errors.Is(err, context.DeadlineExceeded), name)
			require.Equal(t, tc.class == cri.Cancelled, errors.Is(err, context.Canceled), name)
			cancel(nil)
			synctest.Wait() // the runtime has noticed, too, and freed the name
		}
	})
}
