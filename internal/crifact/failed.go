package crifact

// written is a failed write of which it is known whether it may have happened.
type written struct {
	err       error
	uncertain bool
}

func (e *written) Error() string { return e.err.Error() }
func (e *written) Unwrap() error { return e.err }

// Uncertain reports whether only a look at the runtime tells what became of the write.
func (e *written) Uncertain() bool { return e.uncertain }

// Written returns err, of a write, as one that tells by a method Uncertain()
// bool whether the write may have happened. It returns nil if err is nil.
func Written(err error, uncertain bool) error {
	if err == nil {
		return nil
	}
	return &written{err, uncertain}
}
