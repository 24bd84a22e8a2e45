package manifest

import (
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// volumeList checks the volumes and keeps the valid ones for the mounts.
func (v *validator) volumeList(at *field.Path) {
	v.volumes = map[string]*v1.Volume{}
	names := map[string]bool{}
	for i := range v.spec.Volumes {
		vol, at, before := &v.spec.Volumes[i], at.Index(i), len(v.errs)
		v.label(at.Child("name"), vol.Name)
		v.unique(at.Child("name"), vol.Name, names)
		v.volume(vol, at)
		if len(v.errs) == before {
			v.volumes[vol.Name] = vol
		}
	}
}

// volume checks the type that is set; there may be no second one.
func (v *validator) volume(vol *v1.Volume, at *field.Path) {
	found := false
	for _, kind := range volumeKinds(vol) {
		switch {
		case !kind.set:
		case found:
			v.add(field.Forbidden(at.Child(kind.name), "may not specify more than 1 volume type"))
		default:
			found = true
			v.volumeSource(vol, kind.name, at.Child(kind.name))
		}
	}
	v.require(found, at, "must specify a volume type")
}

// volumeSource checks the types that need nothing but the node. The others
// are refused in a static pod, or have no use without their plugins; their
// errors show when they are mounted.
func (v *validator) volumeSource(vol *v1.Volume, kind string, at *field.Path) {
	switch kind {
	case "emptyDir":
		limit, mode := vol.EmptyDir.SizeLimit, vol.EmptyDir.Mode
		v.forbid(limit != nil && limit.Cmp(resource.Quantity{}) < 0, at.Child("sizeLimit"), "must be a valid resource quantity")
		if mode != nil && (*mode < 0 || *mode > 0o1777) {
			v.invalid(at.Child("mode"), *mode, "must be a number between 0 and 01777 (octal), both inclusive")
		}
	case "hostPath":
		v.hostPath(vol.HostPath, at)
	case "downwardAPI":
		v.fileMode(vol.DownwardAPI.DefaultMode, at.Child("defaultMode"))
		v.userID(vol.DownwardAPI.DefaultUser, at.Child("defaultUser"))
		v.downwardItems(vol.DownwardAPI.Items, at)
	case "projected":
		v.projected(vol.Projected, at)
	case "secret":
		v.require(vol.Secret.SecretName != "", at.Child("secretName"), "")
		v.fileMode(vol.Secret.DefaultMode, at.Child("defaultMode"))
		v.userID(vol.Secret.DefaultUser, at.Child("defaultUser"))
		v.keys(vol.Secret.Items, at.Child("items"))
	case "configMap":
		v.require(vol.ConfigMap.Name != "", at.Child("name"), "")
		v.fileMode(vol.ConfigMap.DefaultMode, at.Child("defaultMode"))
		v.userID(vol.ConfigMap.DefaultUser, at.Child("defaultUser"))
		v.keys(vol.ConfigMap.Items, at.Child("items"))
	case "nfs":
		v.require(vol.NFS.Server != "", at.Child("server"), "")
		v.require(vol.NFS.Path != "", at.Child("path"), "")
		if !path.IsAbs(vol.NFS.Path) {
			v.invalid(at.Child("path"), vol.NFS.Path, "must be an absolute path")
		}
	case "image":
		v.require(vol.Image.Reference != "", at.Child("reference"), "")
		oneOf(v, at.Child("pullPolicy"), vol.Image.PullPolicy, v1.PullAlways, v1.PullIfNotPresent, v1.PullNever)
	case "persistentVolumeClaim":
		v.require(vol.PersistentVolumeClaim.ClaimName != "", at.Child("claimName"), "")
	}
}

func (v *validator) hostPath(source *v1.HostPathVolumeSource, at *field.Path) {
	if !v.require(source.Path != "", at.Child("path"), "") {
		return
	}
	v.noBacksteps(source.Path, at.Child("path"))
	if source.Type != nil && *source.Type != v1.HostPathUnset {
		oneOf(v, at.Child("type"), *source.Type, v1.HostPathDirectoryOrCreate, v1.HostPathDirectory, v1.HostPathFileOrCreate,
			v1.HostPathFile, v1.HostPathSocket, v1.HostPathCharDev, v1.HostPathBlockDev)
	}
}

func (v *validator) downwardItems(items []v1.DownwardAPIVolumeFile, at *field.Path) {
	for i := range items {
		item, at := &items[i], at.Child("items").Index(i)
		v.require(item.Path != "", at.Child("path"), "")
		v.reservedPath(item.Path, at.Child("path"))
		v.fileMode(item.Mode, at.Child("mode"))
		v.userID(item.User, at.Child("user"))
		switch {
		case item.FieldRef != nil:
			v.fieldRef(item.FieldRef, at.Child("fieldRef"), volumeFields())
			if item.ResourceFieldRef != nil {
				v.invalid(at, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
			}
		case item.ResourceFieldRef != nil:
			if v.require(item.ResourceFieldRef.ContainerName != "", at.Child("resourceFieldRef", "containerName"), "") {
				v.resourceFieldRef(item.ResourceFieldRef, at.Child("resourceFieldRef"))
			}
		default:
			v.add(field.Required(at, "one of fieldRef and resourceFieldRef is required"))
		}
	}
}

// projected checks the sources that a static pod may have, which are those
// that need no API server, and that no two files have one path.
func (v *validator) projected(p *v1.ProjectedVolumeSource, at *field.Path) {
	v.fileMode(p.DefaultMode, at.Child("defaultMode"))
	v.userID(p.DefaultUser, at.Child("defaultUser"))
	paths := map[string]bool{}
	for i, source := range p.Sources {
		at := at.Child("sources").Index(i)
		kinds := 0
		for _, set := range []bool{
			source.Secret != nil, source.ConfigMap != nil, source.DownwardAPI != nil,
			source.ServiceAccountToken != nil, source.ClusterTrustBundle != nil, source.PodCertificate != nil,
		} {
			if set {
				kinds++
			}
		}
		v.forbid(kinds > 1, at, "may not specify more than 1 volume type")
		if source.DownwardAPI == nil {
			continue
		}
		v.downwardItems(source.DownwardAPI.Items, at.Child("downwardAPI"))
		for _, item := range source.DownwardAPI.Items {
			if item.Path != "" && paths[item.Path] {
				v.invalid(at.Child("downwardAPI"), item.Path, "conflicting duplicate paths")
			}
			paths[item.Path] = true
		}
	}
}

func (v *validator) keys(items []v1.KeyToPath, at *field.Path) {
	for i, item := range items {
		at := at.Index(i)
		v.require(item.Key != "", at.Child("key"), "")
		v.require(item.Path != "", at.Child("path"), "")
		v.reservedPath(item.Path, at.Child("path"))
		v.fileMode(item.Mode, at.Child("mode"))
		v.userID(item.User, at.Child("user"))
	}
}

func (v *validator) fileMode(mode *int32, at *field.Path) {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		v.invalid(at, *mode, "must be a number between 0 and 0777 (octal), both inclusive")
	}
}

// noBacksteps refuses a path that climbs.
func (v *validator) noBacksteps(p string, at *field.Path) {
	for _, part := range strings.Split(p, "/") {
		if part == ".." {
			v.invalid(at, p, "must not contain '..'")
			return
		}
	}
}

// descending checks a path that has to stay below where it starts.
func (v *validator) descending(p string, at *field.Path) {
	if path.IsAbs(p) {
		v.invalid(at, p, "must be a relative path")
	}
	v.noBacksteps(p, at)
}

// reservedPath checks a path in a volume whose names with two dots in front
// belong to the one who swaps its contents.
func (v *validator) reservedPath(p string, at *field.Path) {
	v.descending(p, at)
	if strings.HasPrefix(p, "..") && !strings.HasPrefix(p, "../") {
		v.invalid(at, p, "must not start with '..'")
	}
}

// userID checks a numeric user.
func (v *validator) userID(id *int64, at *field.Path) {
	if id != nil {
		v.invalid(at, *id, validation.IsValidUserID(*id)...)
	}
}

// groupID checks a numeric group.
func (v *validator) groupID(id *int64, at *field.Path) {
	if id != nil {
		v.invalid(at, *id, validation.IsValidGroupID(*id)...)
	}
}
