package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// Flags are the command line of "flowlet run": flowlet's own flags and all
// flags of kubelet v1.37.2.
type Flags struct {
	// ConfigFile (--config) is a KubeletConfiguration; empty: defaults only.
	ConfigFile string
	// ConfigDir (--config-dir) holds drop-ins, *.conf, also in sub-directories.
	ConfigDir string
	// PolicyFile (--policy) sets classes: slots, deadlines, back-off.
	PolicyFile string
	// RootDir (--root-dir) is where everything that flowlet keeps is below.
	RootDir string
	// HostnameOverride (--hostname-override) is the node name.
	HostnameOverride string
	// PrepareHost (--prepare-host, by default true) lets the agent set what
	// pods need of the machine before there are any: parameters of the kernel,
	// the mount propagation of RootDir, the cgroup above all pods.
	PrepareHost bool
	// Kubeconfig (--kubeconfig) is refused: there is no API server source yet.
	Kubeconfig string
	// Dead says how many containers that have ended are kept.
	Dead DeadContainers
	// Version (--version) is "", "true" or "raw", as the kubelet's.
	Version string

	fields []*fieldFlag
	inert  []*fieldFlag
}

// DeadContainers says how many containers that have ended are kept.
type DeadContainers struct {
	// MinAge (--minimum-container-ttl-duration) keeps those that were made
	// less than that ago.
	MinAge time.Duration
	// PerContainer (--maximum-dead-containers-per-container) is how many
	// attempts of a container are kept beside the newest; negative: all.
	PerContainer int
	// OnNode (--maximum-dead-containers) bounds them on the whole node;
	// negative: no bound.
	OnNode int
}

// fieldFlag is a flag that sets a field of KubeletConfiguration, or a flag
// without a field, whose path is empty and that has no effect.
type fieldFlag struct {
	name  string
	path  string
	value *flagValue
}

// AddFlags registers the flags on fs, which also learns to take "_" for "-" in
// names as the kubelet does. The values are read after fs was parsed.
func AddFlags(fs *pflag.FlagSet) *Flags {
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	f := &Flags{}
	fs.StringVar(&f.ConfigFile, "config", "", "file with a KubeletConfiguration (kubelet.config.k8s.io/v1beta1)")
	fs.StringVar(&f.ConfigDir, "config-dir", "", "directory with drop-in files (*.conf), merged over --config in the order of their paths")
	fs.StringVar(&f.PolicyFile, "policy", "", "file that sets slots, deadlines and back-off of the classes of work; read again when it changes")
	fs.StringVar(&f.RootDir, "root-dir", DefaultRootDir, "directory for everything that the agent keeps")
	fs.StringVar(&f.HostnameOverride, "hostname-override", "", "name of this node instead of the host name")
	fs.BoolVar(&f.PrepareHost, "prepare-host", true,
		"set kernel parameters and make --root-dir a shared mount, as the kubelet does; false leaves the machine as it is")
	fs.StringVar(&f.Kubeconfig, "kubeconfig", "", "not supported in this release: the agent runs stand-alone")
	fs.DurationVar(&f.Dead.MinAge, "minimum-container-ttl-duration", 0, "least age of a container that has ended before it is removed")
	fs.IntVar(&f.Dead.PerContainer, "maximum-dead-containers-per-container", 1, "ended attempts of a container that are kept beside its newest; negative: all")
	fs.IntVar(&f.Dead.OnNode, "maximum-dead-containers", -1, "ended containers that are kept on the node; negative: no limit")
	fs.StringVar(&f.Version, "version", "", "print the version and exit")
	fs.Lookup("version").NoOptDefVal = "true"
	for _, row := range flagTable() {
		value := &flagValue{kind: row.kind}
		usage := "sets " + row.path + " of KubeletConfiguration"
		if row.path == "" {
			usage = "accepted for compatibility, has no effect"
		}
		added := fs.VarPF(value, row.name, row.short, usage)
		if row.kind == kindBool {
			added.NoOptDefVal = "true"
		}
		ff := &fieldFlag{name: row.name, path: row.path, value: value}
		if row.path == "" {
			f.inert = append(f.inert, ff)
		} else {
			f.fields = append(f.fields, ff)
		}
	}
	return f
}

// NewFlags returns the flags as they are when none is given.
func NewFlags() *Flags { return AddFlags(pflag.NewFlagSet("", pflag.ContinueOnError)) }

// given lists the field flags that were on the command line.
func (f *Flags) given() []*fieldFlag {
	return slices.DeleteFunc(slices.Clone(f.fields), func(ff *fieldFlag) bool { return !ff.value.set })
}

// check refuses what would otherwise be misunderstood.
func (f *Flags) check() error {
	var errs []error
	if f.Kubeconfig != "" {
		errs = append(errs, errors.New("--kubeconfig is not supported in this release: flowlet runs stand-alone with static pods; remove the flag"))
	}
	if f.RootDir == "" {
		errs = append(errs, errors.New("--root-dir may not be empty; the default is "+DefaultRootDir))
	}
	return errors.Join(errs...)
}

func (f *Flags) warnings() []string {
	var out []string
	for _, ff := range f.inert {
		if ff.value.set {
			out = append(out, fmt.Sprintf("--%s has no effect in this release", ff.name))
		}
	}
	slices.SortFunc(out, strings.Compare)
	return out
}
