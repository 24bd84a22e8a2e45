package app

import "runtime/debug"

// KubernetesVersion is the version whose node behaviour this build follows.
const KubernetesVersion = "v1.37.2"

// Version returns the version of this build.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "v0.1.0-dev"
}
