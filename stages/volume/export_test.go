package volume

import "os"

// RemoveTree is tested by itself: it is what must never go wrong.
var RemoveTree = removeTree

// OpenPart is tested without mounts.
func OpenPart(volume, name string) (*os.File, error) { return openPart(volume, name) }

// Stop makes every step of projected files ask f whether to stop after it.
func (s *Volumes) Stop(f func(step string) error) { s.step = f }
