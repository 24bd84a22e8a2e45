package cri

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrUnsupported is in the chain of the error of every call that the runtime does not implement.
var ErrUnsupported = errors.New("not supported by this container runtime")

var errNoAnswer = errors.New("no answer from the container runtime")

// Error is a failed call. Its text is "METHOD OBJECT: cause", without gRPC's own framing.
type Error struct {
	Method string // the RPC, for example "StartContainer"
	Object string // namespace/name, image reference or shortened ID; empty where a call has no object
	Err    error  // what gRPC returned; carries the status code
	Cause  error  // why the context ended, nil when it had not
	Sent   bool   // false: the request surely did not reach the runtime
}

// Error implements error.
func (e *Error) Error() string {
	what := e.Method
	if e.Object != "" {
		what += " " + e.Object
	}
	return what + ": " + e.reason()
}

func (e *Error) reason() string {
	s, ok := status.FromError(e.Err)
	switch {
	case e.Cause != nil:
		return e.Cause.Error()
	case !ok:
		return e.Err.Error()
	case s.Code() == codes.Unimplemented:
		return ErrUnsupported.Error()
	case s.Code() == codes.Unavailable && !e.Sent:
		return "container runtime is not reachable: " + s.Message()
	default:
		return s.Message()
	}
}

// Unwrap gives the gRPC error and the cause of the context's end, so that errors.Is finds either.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}

// Is makes ErrUnsupported, context.DeadlineExceeded and context.Canceled match the statuses that stand for them.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrUnsupported:
		return e.Class() == Unimplemented
	case context.DeadlineExceeded:
		return e.Class() == Deadline
	case context.Canceled:
		return e.Class() == Cancelled
	}
	return false
}

// GRPCStatus lets status.FromError and status.Code see the runtime's answer.
func (e *Error) GRPCStatus() *status.Status {
	return status.New(codeOf(e.Err), status.Convert(e.Err).Message())
}

// Class is e's class; see Classify.
func (e *Error) Class() Class { return classOf(e.Err) }

// Class says what a failed call means to its caller.
type Class uint8

// The classes of errors.
const (
	OK            Class = iota // no error
	NotFound                   // the runtime does not know the object
	AlreadyExists              // the runtime has an object of that name; ReservedFor names it
	Unimplemented              // the runtime lacks the method
	Unavailable                // no connection, or it broke during the call
	Deadline                   // the deadline passed, here or in the runtime
	Cancelled                  // the caller gave up
	Refused                    // the runtime understood and declined: the same request fails again
	Failed                     // the runtime tried and failed, or said nothing more precise (most errors of containerd)
)

// String returns a lower-case word fit for logs and metric labels.
func (c Class) String() string {
	names := [...]string{"ok", "not_found", "already_exists", "unimplemented", "unavailable", "deadline", "cancelled", "refused", "failed"}
	if int(c) < len(names) {
		return names[c]
	}
	return "unknown"
}

// Classify tells what err means. It understands errors of this package, wrapped or not, bare gRPC and context errors,
// and the runtimes' habit of reporting a name that is taken with other codes than AlreadyExists.
func Classify(err error) Class { return classOf(err) }

// IsNotFound reports whether the runtime does not know the object.
func IsNotFound(err error) bool { return classOf(err) == NotFound }

// IsAlreadyExists reports whether the name of the new object is taken.
func IsAlreadyExists(err error) bool { return classOf(err) == AlreadyExists }

// IsUnimplemented reports whether the runtime lacks the method.
func IsUnimplemented(err error) bool { return classOf(err) == Unimplemented }

// IsUnavailable reports whether there was no connection, or it broke.
func IsUnavailable(err error) bool { return classOf(err) == Unavailable }

// IsDeadline reports whether the deadline of the call, or one inside the runtime, passed.
func IsDeadline(err error) bool { return classOf(err) == Deadline }

// IsUncertain reports whether a write that returned err may nevertheless have happened, in part or in full, now or
// later: the deadline passed, the caller gave up or the connection broke after the request was sent, or the runtime
// failed half-way. Only a read that begins after the write's end tells. A request that never left is not uncertain.
func IsUncertain(err error) bool {
	var e *Error
	if errors.As(err, &e) && !e.Sent {
		return false
	}
	switch classOf(err) {
	case Unavailable, Deadline, Cancelled, Failed:
		return true
	default:
		return false
	}
}

// ReservedFor returns the ID of the object that holds the name a create call asked for, when the runtime named it.
func ReservedFor(err error) (id string, ok bool) {
	if !IsAlreadyExists(err) {
		return "", false
	}
	_, after, found := strings.Cut(err.Error(), reservedFor)
	if !found {
		return "", false
	}
	id, _, _ = strings.Cut(strings.Trim(after, ` "`), `"`)
	return id, id != ""
}

// Texts of runtimes for a name that is taken: containerd ("name X is reserved for ID"), CRI-O ("name is reserved").
const (
	reserved    = "is reserved"
	reservedFor = "is reserved for "
)

func classOf(err error) Class {
	if err == nil {
		return OK
	}
	switch code := codeOf(err); code {
	case codes.OK:
		return OK
	case codes.NotFound:
		return NotFound
	case codes.AlreadyExists:
		return AlreadyExists
	case codes.Unimplemented:
		return Unimplemented
	case codes.Unavailable:
		return Unavailable
	case codes.DeadlineExceeded:
		return Deadline
	case codes.Canceled:
		return Cancelled
	default:
		if strings.Contains(err.Error(), reserved) { // Unknown up to containerd 1.7, FailedPrecondition since 2.0
			return AlreadyExists
		}
		if isRefusal(code) {
			return Refused
		}
		return Failed
	}
}

// isRefusal tells codes that a repetition of the request would get again.
func isRefusal(c codes.Code) bool {
	switch c { //nolint:exhaustive // all others are not
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange, codes.PermissionDenied, codes.Unauthenticated, codes.ResourceExhausted:
		return true
	default:
		return false
	}
}

// codeOf is status.Code that also knows bare context errors.
func codeOf(err error) codes.Code {
	s, ok := status.FromError(err)
	if ok {
		return s.Code()
	}
	return status.FromContextError(unwrapContext(err)).Code()
}

func unwrapContext(err error) error {
	for _, c := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, c) {
			return c
		}
	}
	return err
}

func isContextCode(c codes.Code) bool { return c == codes.DeadlineExceeded || c == codes.Canceled }
