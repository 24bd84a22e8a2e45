package app_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/cmd/flowlet/app"
)

func TestRuntimesThatMountImages(t *testing.T) {
	for _, tt := range []struct {
		name, version string
		want          bool
	}{
		{"containerd", "1.6.20~ds1", false},
		{"containerd", "v2.0.5", false},
		{"containerd", "v2.1.0-rc.1", true},
		{"containerd", "2.4.2", true},
		{"containerd", "", true}, // not asked yet: the runtime will tell
		{"cri-o", "1.30.9", false},
		{"cri-o", "1.31.0", true},
		{"another", "0.1", true},
	} {
		require.Equal(t, tt.want, app.MountsImages(tt.name, tt.version), "%s %s", tt.name, tt.version)
	}
}
