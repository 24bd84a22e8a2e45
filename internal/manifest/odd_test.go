package manifest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/manifest"
)

func TestOddThingsAreWarnings(t *testing.T) {
	const port = " has no port of that name"
	for text, want := range map[string]string{
		"  terminationGracePeriodSeconds: -5\n":                                                                       "web.yaml:13: spec.terminationGracePeriodSeconds is -5, which counts as 1",
		"    livenessProbe: {httpGet: {port: htp}}\n":                                                                 "web.yaml:13: spec.containers[0].livenessProbe.httpGet.port is \"htp\", and the container" + port,
		"    readinessProbe: {tcpSocket: {port: htp}}\n":                                                              "web.yaml:13: spec.containers[0].readinessProbe.tcpSocket.port is \"htp\", and the container" + port,
		"    lifecycle: {preStop: {httpGet: {port: htp}}}\n":                                                          "web.yaml:13: spec.containers[0].lifecycle.preStop.httpGet.port is \"htp\", and the container" + port,
		"  - {name: b, image: \"my image:1\"}\n":                                                                      "web.yaml:13: spec.containers[1].image has white space in it, so the container waits with InvalidImageName",
		"  - {name: b, image: x, startupProbe: {httpGet: {port: q}}, ports: [{name: http, containerPort: 81}]}\n":     "fails each time; it has http",
		"  - {name: b, image: x, livenessProbe: {httpGet: {port: http}}, ports: [{name: http, containerPort: 81}]}\n": "",
		"    livenessProbe: {httpGet: {port: 8081}}\n":                                                                "",
		"  terminationGracePeriodSeconds: 0\n":                                                                        "",
	} {
		t.Run(text, func(t *testing.T) {
			s, err := manifest.Load("web.yaml", []byte(web+text), manifest.Origin{NodeName: "n", Location: "web.yaml"})
			require.NoError(t, err)
			if want == "" {
				require.Empty(t, s.Warnings)
				return
			}
			require.Len(t, s.Warnings, 1)
			require.Contains(t, s.Warnings[0].String(), want)
		})
	}
}
