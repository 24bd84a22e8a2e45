package pod

import "errors"

// reasonError carries one of the ecosystem's reason words beside an error.
type reasonError struct {
	reason string
	err    error
}

func (e *reasonError) Error() string { return e.err.Error() }
func (e *reasonError) Unwrap() error { return e.err }

// WithReason returns err with a reason word such as ErrImagePull or
// CreateContainerConfigError, from which waiting reasons and events are made.
func WithReason(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &reasonError{reason, err}
}

// ReasonOf returns the outermost reason word that err carries, or "".
func ReasonOf(err error) string {
	if r, ok := errors.AsType[*reasonError](err); ok {
		return r.reason
	}
	return ""
}
