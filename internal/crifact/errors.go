package crifact

import (
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Unreachable reports whether there was no connection to the runtime, or it broke.
func Unreachable(err error) bool { return code(err) == codes.Unavailable }

// NotFound reports whether the runtime does not know the object.
func NotFound(err error) bool { return code(err) == codes.NotFound }

// Unsupported reports whether the runtime does not know the call.
func Unsupported(err error) bool { return code(err) == codes.Unimplemented }

// NameTaken reports whether a create call failed because the runtime has an
// object of that name. containerd (1.6: Unknown, 2.4: FailedPrecondition) and
// CRI-O say so in words, with codes that stand for many failures.
func NameTaken(err error) bool {
	switch code(err) {
	case codes.AlreadyExists:
		return true
	case codes.Unknown, codes.Internal, codes.Aborted, codes.FailedPrecondition:
		return strings.Contains(Message(err), "is reserved")
	default:
		return false
	}
}

// Uncertain reports whether a write that failed with err may have happened all
// the same, now or later or by an earlier call, so that only a look at the
// runtime tells. An error
// that knows better says so by a method Uncertain() bool.
func Uncertain(err error) bool {
	if u, ok := errors.AsType[interface {
		error
		Uncertain() bool
	}](err); ok {
		return u.Uncertain()
	}
	switch code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown, codes.Internal, codes.Aborted:
		return true
	default:
		return NameTaken(err)
	}
}

// Message returns the runtime's own words in err, or the text of err where
// there are none.
func Message(err error) string {
	if s, ok := statusOf(err); ok {
		return s.Message()
	}
	return err.Error()
}

func code(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	if s, ok := statusOf(err); ok {
		return s.Code()
	}
	return status.FromContextError(err).Code()
}

// statusOf finds the status in the chain of err. Package status would put the
// text of the whole chain in place of the runtime's.
func statusOf(err error) (*status.Status, bool) {
	if g, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err); ok {
		return g.GRPCStatus(), true
	}
	return nil, false
}
