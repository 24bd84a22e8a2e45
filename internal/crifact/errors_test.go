package crifact_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/flowlet/flowlet/internal/crifact"
)

// sure is an error that knows whether its write may have happened.
type sure struct {
	error
	uncertain bool
}

func (s sure) Uncertain() bool { return s.uncertain }
func (s sure) Unwrap() error   { return s.error }

func TestErrors(t *testing.T) {
	of := func(c codes.Code, text string) error { return status.Error(c, text) }
	for name, tc := range map[string]struct {
		err                                     error
		unreachable, notFound, taken, uncertain bool
	}{
		"nil":                      {err: nil},
		"away":                     {err: of(codes.Unavailable, "x"), unreachable: true, uncertain: true},
		"away, never sent":         {err: sure{of(codes.Unavailable, "x"), false}, unreachable: true},
		"not found":                {err: of(codes.NotFound, "x"), notFound: true},
		"not found, wrapped":       {err: fmt.Errorf("a: %w", of(codes.NotFound, "x")), notFound: true},
		"taken":                    {err: of(codes.AlreadyExists, "x"), taken: true, uncertain: true},
		"taken, said by words":     {err: of(codes.Unknown, `name "a" is reserved for "b"`), taken: true, uncertain: true},
		"taken, containerd 2.4":    {err: of(codes.FailedPrecondition, `name "a" is reserved for "b"`), taken: true, uncertain: true},
		"failed":                   {err: of(codes.Unknown, "x"), uncertain: true},
		"refused":                  {err: of(codes.InvalidArgument, "x is reserved")},
		"no time":                  {err: of(codes.DeadlineExceeded, "x"), uncertain: true},
		"no time, without status":  {err: fmt.Errorf("a: %w", context.DeadlineExceeded), uncertain: true},
		"given up, without status": {err: context.Canceled, uncertain: true},
		"known to have happened":   {err: sure{of(codes.InvalidArgument, "x"), true}, uncertain: true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.unreachable, crifact.Unreachable(tc.err))
			require.Equal(t, tc.notFound, crifact.NotFound(tc.err))
			require.Equal(t, tc.taken, tc.err != nil && crifact.NameTaken(tc.err))
			require.Equal(t, tc.uncertain, crifact.Uncertain(tc.err))
		})
	}
}

func TestMessage(t *testing.T) {
	require.Equal(t, "words", crifact.Message(fmt.Errorf("wrapped: %w", status.Error(codes.Unknown, "words"))))
	require.Equal(t, "plain", crifact.Message(errors.New("plain")))
}
