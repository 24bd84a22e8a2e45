package cgroup

import (
	"context"
	"fmt"
	"path"
	"strings"
)

// LimitReserved holds a part of the machine that is no pod's, such as
// /system.slice, to what is reserved for it. at is its cgroup in the driver's
// spelling; it has to exist: the machine decides what is in it.
func (m *Manager) LimitReserved(_ context.Context, at string, v Values) error {
	if m.isNop() {
		return nil
	}
	name := existing(at, m.config.Driver)
	if !m.tree.exists(name.Path(m.config.Driver)) {
		return fmt.Errorf("cgroup %s, which is to be limited to what is reserved for it, does not exist", at)
	}
	if err := m.kernel.apply(name, m.possible(v)); err != nil {
		return fmt.Errorf("limiting cgroup %s to what is reserved for it: %w", at, err)
	}
	return nil
}

// existing reads a name from the driver's spelling: of systemd's a-b.slice the
// components are a and b.
func existing(at string, d Driver) Name {
	if d != Systemd {
		return strings.FieldsFunc(path.Clean("/"+at), func(r rune) bool { return r == '/' })
	}
	return strings.FieldsFunc(strings.TrimSuffix(path.Base(at), sliceEnd), func(r rune) bool { return r == '-' })
}
