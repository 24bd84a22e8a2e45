package app_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/cmd/flowlet/app"
)

// params is a kernel in memory.
type params struct {
	values map[string]int
	fail   error
}

func (p *params) GetSysctl(name string) (int, error) {
	v, ok := p.values[name]
	if !ok {
		return 0, os.ErrNotExist
	}
	return v, nil
}

func (p *params) SetSysctl(name string, value int) error {
	if p.fail == nil {
		p.values[name] = value
	}
	return p.fail
}

// The numbers are those of kubelet v1.37.2.
func wanted() map[string]int {
	return map[string]int{
		"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
		"kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000,
	}
}

func TestTune(t *testing.T) {
	k := &params{values: wanted()}
	k.values["vm/overcommit_memory"], k.values["kernel/panic"] = 0, 0
	was := maps.Clone(k.values)

	_, err := app.Tune(k, true)
	require.ErrorContains(t, err, "protectKernelDefaults: vm/overcommit_memory is 0 and must be 1")
	require.ErrorContains(t, err, "kernel/panic is 0 and must be 10")
	require.Equal(t, was, k.values, "nothing is changed")

	k.fail = os.ErrPermission
	set, err := app.Tune(k, false)
	require.ErrorIs(t, err, os.ErrPermission)
	require.Empty(t, set)

	k.fail = nil
	set, err = app.Tune(k, false)
	require.NoError(t, err)
	require.Equal(t, []string{"vm/overcommit_memory=1", "kernel/panic=10"}, set)
	require.Equal(t, wanted(), k.values)

	set, err = app.Tune(k, true)
	require.NoError(t, err)
	require.Empty(t, set)

	delete(k.values, "vm/panic_on_oom")
	_, err = app.Tune(k, false)
	require.True(t, errors.Is(err, os.ErrNotExist))
}

func TestAppArmor(t *testing.T) {
	sys := t.TempDir()
	require.False(t, app.AppArmor(sys))
	require.NoError(t, os.MkdirAll(filepath.Join(sys, "kernel/security/apparmor"), 0o755))
	require.False(t, app.AppArmor(sys))
	enabled := filepath.Join(sys, "module/apparmor/parameters/enabled")
	require.NoError(t, os.MkdirAll(filepath.Dir(enabled), 0o755))
	require.NoError(t, os.WriteFile(enabled, []byte("N\n"), 0o600))
	require.False(t, app.AppArmor(sys))
	require.NoError(t, os.WriteFile(enabled, []byte("Y\n"), 0o600))
	require.True(t, app.AppArmor(sys))
}
