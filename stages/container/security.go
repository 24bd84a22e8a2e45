package container

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// maskedPaths and readonlyPaths are hidden from and protected against
// containers with the default procMount (kubelet v1.37.2).
func maskedPaths() []string {
	return []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	}
}

func readonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

func (c *Containers) security(st *Start) (*runtimeapi.LinuxContainerSecurityContext, error) {
	p := st.State.Pod()
	sc := effective(p, st.Container)
	if err := nonRoot(sc, st.Image); err != nil {
		return nil, fmt.Errorf("%w (pod: %q, container: %s)", err, p.Name+"_"+p.Namespace+"("+string(p.UID)+")", st.Container.Name)
	}
	seccomp, err := c.seccomp(sc.SeccompProfile)
	if err != nil {
		return nil, err
	}
	armor, armorName, err := appArmor(sc.AppArmorProfile)
	if err != nil {
		return nil, err
	}
	namespaces, err := namespacesOf(st)
	if err != nil {
		return nil, err
	}
	groups, policy := crifact.Groups(p.Spec.SecurityContext)
	out := &runtimeapi.LinuxContainerSecurityContext{
		Capabilities:             capabilities(sc.Capabilities),
		Privileged:               is(sc.Privileged),
		NamespaceOptions:         namespaces,
		SelinuxOptions:           crifact.SELinux(sc.SELinuxOptions),
		RunAsUser:                crifact.Int64(sc.RunAsUser),
		RunAsGroup:               crifact.Int64(sc.RunAsGroup),
		ReadonlyRootfs:           is(sc.ReadOnlyRootFilesystem),
		SupplementalGroups:       groups,
		SupplementalGroupsPolicy: policy,
		NoNewPrivs:               sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation,
		Seccomp:                  seccomp,
		Apparmor:                 armor,
	}
	//lint:ignore SA1019 older runtimes read this field
	out.ApparmorProfile = armorName
	if out.RunAsUser == nil {
		uid, name := imageUser(st.Image)
		out.RunAsUser, out.RunAsUsername = crifact.Int64(uid), name
	}
	if sc.ProcMount == nil || *sc.ProcMount != v1.UnmaskedProcMount {
		out.MaskedPaths, out.ReadonlyPaths = c.masked, readonlyPaths()
	}
	return out, nil
}

func is(b *bool) bool { return b != nil && *b }

// effective returns the container's security context, with what it leaves open
// taken from the pod's.
func effective(p *v1.Pod, ct *v1.Container) v1.SecurityContext {
	var sc v1.SecurityContext
	if ct.SecurityContext != nil {
		sc = *ct.SecurityContext
	}
	if sc.AppArmorProfile == nil {
		sc.AppArmorProfile = annotated(p, ct.Name)
	}
	of := p.Spec.SecurityContext
	if of == nil {
		return sc
	}
	inherit(&sc.SELinuxOptions, of.SELinuxOptions)
	inherit(&sc.RunAsUser, of.RunAsUser)
	inherit(&sc.RunAsGroup, of.RunAsGroup)
	inherit(&sc.RunAsNonRoot, of.RunAsNonRoot)
	inherit(&sc.SeccompProfile, of.SeccompProfile)
	inherit(&sc.AppArmorProfile, of.AppArmorProfile)
	return sc
}

func inherit[T any](have **T, from *T) {
	if *have == nil {
		*have = from
	}
}

// imageUser returns the user that the image names, by number or by name; root
// when it names none.
func imageUser(i pod.Image) (uid *int64, name string) {
	if i.UID == nil && i.User == "" {
		return new(int64), ""
	}
	return i.UID, i.User
}

// nonRoot checks runAsNonRoot. The sentences are the ecosystem's.
func nonRoot(sc v1.SecurityContext, image pod.Image) error {
	if !is(sc.RunAsNonRoot) {
		return nil
	}
	if sc.RunAsUser != nil {
		if *sc.RunAsUser == 0 {
			return errors.New("container's runAsUser breaks non-root policy")
		}
		return nil
	}
	uid, name := imageUser(image)
	switch {
	case uid != nil && *uid == 0:
		return errors.New("container has runAsNonRoot and image will run as root")
	case uid == nil && name != "":
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root", name)
	}
	return nil
}

func capabilities(c *v1.Capabilities) *runtimeapi.Capability {
	if c == nil {
		return nil
	}
	out := &runtimeapi.Capability{}
	for _, a := range c.Add {
		out.AddCapabilities = append(out.AddCapabilities, string(a))
	}
	for _, d := range c.Drop {
		out.DropCapabilities = append(out.DropCapabilities, string(d))
	}
	return out
}

// namespacesOf returns the pod's namespaces; an ephemeral container may join
// the processes of another container.
func namespacesOf(st *Start) (*runtimeapi.NamespaceOption, error) {
	p := st.State.Pod()
	n := crifact.Namespaces(p)
	if users := st.users(); users != nil {
		n.UsernsOptions = users
	}
	target := ""
	for i := range p.Spec.EphemeralContainers {
		if e := &p.Spec.EphemeralContainers[i]; e.Name == st.Container.Name {
			target = e.TargetContainerName
		}
	}
	if target == "" || n.GetPid() != runtimeapi.NamespaceMode_CONTAINER {
		return n, nil
	}
	ct, ok := st.State.NewestIn(target, st.SandboxID)
	if !ok || ct.Gone {
		return nil, fmt.Errorf("unable to find target container %s", target)
	}
	n.Pid, n.TargetId = runtimeapi.NamespaceMode_TARGET, ct.ID
	return n, nil
}
