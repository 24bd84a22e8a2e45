package app

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/component-helpers/node/util/sysctl"

	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/stages/cgroup"
	"github.com/flowlet/flowlet/stages/volume"
)

// kernel reads and sets a parameter of the kernel, named as below /proc/sys.
type kernel interface {
	GetSysctl(name string) (int, error)
	SetSysctl(name string, value int) error
}

// tunable is a parameter of the kernel as pods need it: memory is promised
// freely and reclaimed by killing, a kernel that is broken reboots, and the
// runtime may keep a key for each container.
type tunable struct {
	name string
	want int
}

// tunables are those of kubelet v1.37.2.
func tunables() []tunable {
	return []tunable{
		{sysctl.VMOvercommitMemory, sysctl.VMOvercommitMemoryAlways},
		{sysctl.VMPanicOnOOM, sysctl.VMPanicOnOOMInvokeOOMKiller},
		{sysctl.KernelPanic, sysctl.KernelPanicRebootTimeout},
		{sysctl.KernelPanicOnOops, sysctl.KernelPanicOnOopsAlways},
		{sysctl.RootMaxKeys, sysctl.RootMaxKeysSetting},
		{sysctl.RootMaxBytes, sysctl.RootMaxBytesSetting},
	}
}

// tune brings the tunables to what pods need; with protect it only says which
// are not. set names those that were changed.
func tune(k kernel, protect bool) (set []string, err error) {
	var errs []error
	for _, t := range tunables() {
		is, err := k.GetSysctl(t.name)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("reading %s: %w", t.name, err))
		case is == t.want:
		case protect:
			errs = append(errs, fmt.Errorf("protectKernelDefaults: %s is %d and must be %d; set it, or remove protectKernelDefaults so that the agent sets it",
				t.name, is, t.want))
		default:
			if err := k.SetSysctl(t.name, t.want); err != nil {
				errs = append(errs, fmt.Errorf("setting %s from %d to %d: %w", t.name, is, t.want, err))
				continue
			}
			set = append(set, fmt.Sprintf("%s=%d", t.name, t.want))
		}
	}
	return set, errors.Join(errs...)
}

// check finds what is wrong with the configuration on this machine, before
// anything of the machine is changed.
func (d *daemon) check() error {
	if _, err := thresholds(d.config); err != nil || d.simulated() {
		return err
	}
	tree, err := cgroup.Detect()
	if err != nil {
		return fmt.Errorf("reading this machine's cgroups: %w", err)
	}
	return d.config.CheckHost(config.Host{CgroupV2: tree.V2, SwapOn: swapOn()})
}

// prepareHost gives the machine what pods need of it. Where the agent may not
// do so it says so and goes on; only protectKernelDefaults, with which nothing
// is changed, makes a difference an error.
func (d *daemon) prepareHost() error {
	protect := d.config.Kubelet.ProtectKernelDefaults
	if d.simulated() {
		return nil
	}
	if !d.config.PrepareHost && !protect {
		return nil
	}
	set, err := tune(sysctl.New(), protect)
	switch {
	case err != nil && protect:
		return err
	case err != nil:
		d.log.Warn("the kernel is not set up as pods need it", "error", err)
	}
	if len(set) > 0 {
		d.log.Info("kernel parameters set", "parameters", set)
	}
	if d.config.PrepareHost {
		d.shareRoot()
	}
	return nil
}

func (d *daemon) shareRoot() {
	err := os.MkdirAll(d.config.RootDir, 0o750)
	changed := false
	if err == nil {
		changed, err = volume.Share(d.config.RootDir)
	}
	if err != nil {
		d.log.Warn("mount propagation from and to the host will not work", "error", err)
	}
	if changed {
		d.log.Info("the root directory is a shared mount now", "dir", d.config.RootDir)
	}
}
