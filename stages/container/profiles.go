package container

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (c *Containers) seccomp(p *v1.SeccompProfile) (*runtimeapi.SecurityProfile, error) {
	if p == nil {
		if c.Settings.SeccompDefault {
			return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}, nil
		}
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}, nil
	}
	switch p.Type {
	case v1.SeccompProfileTypeRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}, nil
	case v1.SeccompProfileTypeUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}, nil
	case v1.SeccompProfileTypeLocalhost:
		if p.LocalhostProfile == nil || !filepath.IsLocal(*p.LocalhostProfile) {
			return nil, fmt.Errorf("seccompProfile: localhostProfile must name a file below %s", c.Settings.SeccompDir)
		}
		return &runtimeapi.SecurityProfile{
			ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: filepath.Join(c.Settings.SeccompDir, *p.LocalhostProfile),
		}, nil
	default:
		return nil, fmt.Errorf("seccompProfile: unknown type %q", p.Type)
	}
}

// The older way to choose an AppArmor profile, and the words it uses, which
// are also those of the runtime's older field.
const (
	appArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/"
	appArmorDefault    = "runtime/default"
	appArmorNone       = "unconfined"
	appArmorLocalhost  = "localhost/"
)

// annotated returns the profile that an annotation of the pod gives a container.
func annotated(p *v1.Pod, container string) *v1.AppArmorProfile {
	text := p.Annotations[appArmorAnnotation+container]
	name, localhost := strings.CutPrefix(text, appArmorLocalhost)
	switch {
	case text == "":
		return nil
	case localhost:
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
	case text == appArmorDefault:
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeRuntimeDefault}
	case text == appArmorNone:
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeUnconfined}
	default:
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileType(text)}
	}
}

func appArmor(p *v1.AppArmorProfile) (_ *runtimeapi.SecurityProfile, name string, err error) {
	if p == nil {
		return nil, "", nil
	}
	switch p.Type {
	case v1.AppArmorProfileTypeRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}, appArmorDefault, nil
	case v1.AppArmorProfileTypeUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}, appArmorNone, nil
	case v1.AppArmorProfileTypeLocalhost:
		if p.LocalhostProfile == nil || *p.LocalhostProfile == "" {
			return nil, "", errors.New("appArmorProfile: localhostProfile must name a profile that is loaded on the node")
		}
		return &runtimeapi.SecurityProfile{
			ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: *p.LocalhostProfile,
		}, appArmorLocalhost + *p.LocalhostProfile, nil
	default:
		return nil, "", fmt.Errorf("appArmorProfile: unknown type %q", p.Type)
	}
}
