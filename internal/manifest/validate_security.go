package manifest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/node/util/sysctl"
)

func (v *validator) podSecurity(spec *field.Path) {
	sc, at := v.spec.SecurityContext, spec.Child("securityContext")
	if sc == nil {
		return
	}
	v.userID(sc.RunAsUser, at.Child("runAsUser"))
	v.groupID(sc.RunAsGroup, at.Child("runAsGroup"))
	v.groupID(sc.FSGroup, at.Child("fsGroup"))
	for i := range sc.SupplementalGroups {
		v.groupID(&sc.SupplementalGroups[i], at.Child("supplementalGroups").Index(i))
	}
	v.sysctls(sc.Sysctls, at.Child("sysctls"))
	v.seccomp(sc.SeccompProfile, at.Child("seccompProfile"))
	v.appArmor(sc.AppArmorProfile, at.Child("appArmorProfile"))
	oneOfSet(v, at.Child("fsGroupChangePolicy"), sc.FSGroupChangePolicy, v1.FSGroupChangeAlways, v1.FSGroupChangeOnRootMismatch)
	oneOfSet(v, at.Child("supplementalGroupsPolicy"), sc.SupplementalGroupsPolicy, v1.SupplementalGroupsPolicyMerge, v1.SupplementalGroupsPolicyStrict)
	oneOfSet(v, at.Child("seLinuxChangePolicy"), sc.SELinuxChangePolicy, v1.SELinuxChangePolicyMountOption, v1.SELinuxChangePolicyRecursive)
}

// oneOfSet checks an enumeration that may be absent, but not empty.
func oneOfSet[T ~string](v *validator, at *field.Path, value *T, allowed ...T) {
	if value != nil && !slices.Contains(allowed, *value) {
		v.add(field.NotSupported(at, *value, allowed))
	}
}

func (v *validator) containerSecurity(c *v1.Container, at *field.Path) {
	sc := c.SecurityContext
	if sc == nil {
		return
	}
	v.userID(sc.RunAsUser, at.Child("runAsUser"))
	v.groupID(sc.RunAsGroup, at.Child("runAsGroup"))
	v.seccomp(sc.SeccompProfile, at.Child("seccompProfile"))
	v.appArmor(sc.AppArmorProfile, at.Child("appArmorProfile"))
	oneOfSet(v, at.Child("procMount"), sc.ProcMount, v1.DefaultProcMount, v1.UnmaskedProcMount)
	hostUsers := v.spec.HostUsers == nil || *v.spec.HostUsers
	if hostUsers && sc.ProcMount != nil && *sc.ProcMount == v1.UnmaskedProcMount {
		v.invalid(at.Child("procMount"), *sc.ProcMount, "`hostUsers` must be false to use `Unmasked`")
	}
	if sc.AllowPrivilegeEscalation == nil || *sc.AllowPrivilegeEscalation {
		return
	}
	if sc.Privileged != nil && *sc.Privileged {
		v.invalid(at, "", "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
	}
	if sc.Capabilities != nil && slices.Contains(sc.Capabilities.Add, "CAP_SYS_ADMIN") {
		v.invalid(at, "", "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")
	}
}

func (v *validator) seccomp(p *v1.SeccompProfile, at *field.Path) {
	if p == nil {
		return
	}
	oneOf(v, at.Child("type"), p.Type, v1.SeccompProfileTypeLocalhost, v1.SeccompProfileTypeRuntimeDefault, v1.SeccompProfileTypeUnconfined)
	profile := at.Child("localhostProfile")
	if p.Type != v1.SeccompProfileTypeLocalhost {
		if p.LocalhostProfile != nil {
			v.invalid(profile, *p.LocalhostProfile, "can only be set when seccomp type is Localhost")
		}
		return
	}
	if v.require(p.LocalhostProfile != nil, profile, "must be set when seccomp type is Localhost") {
		v.descending(*p.LocalhostProfile, profile)
	}
}

// maxProfilePath is PATH_MAX without the closing zero.
const maxProfilePath = 4095

func (v *validator) appArmor(p *v1.AppArmorProfile, at *field.Path) {
	if p == nil {
		return
	}
	oneOf(v, at.Child("type"), p.Type, v1.AppArmorProfileTypeLocalhost, v1.AppArmorProfileTypeRuntimeDefault, v1.AppArmorProfileTypeUnconfined)
	profile := at.Child("localhostProfile")
	switch {
	case p.Type != v1.AppArmorProfileTypeLocalhost:
		if p.LocalhostProfile != nil && (p.Type == v1.AppArmorProfileTypeRuntimeDefault || p.Type == v1.AppArmorProfileTypeUnconfined) {
			v.invalid(profile, *p.LocalhostProfile, "can only be set when AppArmor type is Localhost")
		}
	case p.LocalhostProfile == nil || *p.LocalhostProfile == "":
		v.add(field.Required(profile, "must be set when AppArmor type is Localhost"))
	case strings.TrimSpace(*p.LocalhostProfile) != *p.LocalhostProfile:
		v.invalid(profile, *p.LocalhostProfile, "must not be padded with whitespace")
	case len(*p.LocalhostProfile) > maxProfilePath:
		v.add(field.TooLong(profile, "", maxProfilePath))
	}
}

// maxSysctlName is the longest name of a kernel parameter that the API takes.
const maxSysctlName = 253

func (v *validator) sysctls(sysctls []v1.Sysctl, at *field.Path) {
	const segment = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
	shape := regexp.MustCompile("^(" + segment + `[\./])*` + segment + "$")
	seen := map[string]bool{}
	for i, s := range sysctls {
		at := at.Index(i).Child("name")
		if !v.require(s.Name != "", at, "") {
			continue
		}
		if len(s.Name) > maxSysctlName || !shape.MatchString(s.Name) {
			v.invalid(at, s.Name, fmt.Sprintf("must have at most %d characters and match regex %s", maxSysctlName, shape))
		} else {
			v.unique(at, s.Name, seen)
		}
		namespace, _, _ := sysctl.GetNamespace(s.Name)
		switch {
		case v.spec.HostNetwork && namespace == sysctl.NetNamespace:
			v.invalid(at, s.Name, "may not be specified when 'hostNetwork' is true")
		case v.spec.HostIPC && namespace == sysctl.IPCNamespace:
			v.invalid(at, s.Name, "may not be specified when 'hostIPC' is true")
		}
	}
}

// namespaces checks which namespaces of the host go together.
func (v *validator) namespaces(at *field.Path) {
	s := v.spec
	if s.ShareProcessNamespace != nil && *s.ShareProcessNamespace && s.HostPID {
		v.invalid(at.Child("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled")
	}
	if s.HostUsers == nil || *s.HostUsers {
		return
	}
	const why = "when `hostUsers` is false"
	v.forbid(s.HostNetwork, at.Child("hostNetwork"), why)
	v.forbid(s.HostPID, at.Child("hostPID"), why)
	v.forbid(s.HostIPC, at.Child("hostIPC"), why)
	for i := range s.Containers {
		v.forbid(len(s.Containers[i].VolumeDevices) > 0, at.Child("containers").Index(i).Child("volumeDevices"), why)
	}
	for i := range s.InitContainers {
		v.forbid(len(s.InitContainers[i].VolumeDevices) > 0, at.Child("initContainers").Index(i).Child("volumeDevices"), why)
	}
}

// profileAnnotations checks the annotations that named AppArmor profiles
// before there was a field for them.
func (v *validator) profileAnnotations(at *field.Path) {
	for key, profile := range v.pod.Annotations {
		name, ok := strings.CutPrefix(key, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix)
		if !ok {
			continue
		}
		if !slices.ContainsFunc(append(pointers(v.spec.InitContainers), pointers(v.spec.Containers)...),
			func(c *v1.Container) bool { return c.Name == name }) {
			v.invalid(at.Key(key), name, "container not found")
		}
		known := profile == "" || profile == v1.DeprecatedAppArmorBetaProfileRuntimeDefault ||
			profile == v1.DeprecatedAppArmorBetaProfileNameUnconfined ||
			strings.HasPrefix(profile, v1.DeprecatedAppArmorBetaProfileNamePrefix)
		if !known {
			v.invalid(at.Key(key), profile, "invalid AppArmor profile name")
		}
	}
}
