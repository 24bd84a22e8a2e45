package plain_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"

	"github.com/flowlet/flowlet/internal/plain"
)

func TestDecodeSpeaksOfWhatIsWritten(t *testing.T) {
	for what, want := range map[string]string{
		`{"spec":{"hostNetwork":"yes"}}`:                                      "is a string, must be true or false",
		`{"spec":{"containers":{}}}`:                                          "is an object, must be a list",
		`{"spec":{"containers":[{"command":"sleep"}]}}`:                       "is a string, must be a list of strings",
		`{"spec":{"containers":["a"]}}`:                                       "is a string, must be an object",
		`{"spec":{"containers":[{"env":[{"name":"A","value":8080}]}]}}`:       "is a number, must be a string: put it in quotes",
		`{"spec":{"containers":[{"env":[{"name":"A","value":true}]}]}}`:       "is true or false, must be a string: put it in quotes",
		`{"spec":{"securityContext":{"runAsUser":"root"}}}`:                   "is a string, must be an integer",
		`{"spec":{"containers":[{"ports":[{"containerPort":80.5}]}]}}`:        "is the number 80.5, must be an integer of 32 bits",
		`{"spec":{"containers":[{"ports":[{"containerPort":99999999999}]}]}}`: "is the number 99999999999, must be an integer of 32 bits",
		`{"metadata":{"labels":["a"]}}`:                                       "is a list, must be an object whose values are strings",
	} {
		t.Run(what, func(t *testing.T) {
			err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(what), &v1.Pod{})
			require.Error(t, err)
			require.Equal(t, want, plain.Decode(err, nil))
		})
	}
	require.Equal(t, "something else", plain.Decode(errors.New("something else\nand more"), nil))
}

func TestDecodeOfQuantities(t *testing.T) {
	for _, text := range []string{"1GB", "1 core", "lots", "", "1.2.3", "--1"} {
		data, err := json.Marshal(map[string]any{"cpu": text})
		require.NoError(t, err)
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, &v1.ResourceList{})
		require.Error(t, err, text)
		require.Contains(t, plain.Decode(err, text), `"`+text+`" is no quantity: it must be a number, alone or with`)
		require.NotContains(t, plain.Decode(err, map[string]any{}), "map[")
		_, err = plain.Parse(text)
		require.EqualError(t, err, plain.Quantity)
	}
	q, err := plain.Parse("128Mi")
	require.NoError(t, err)
	require.Equal(t, int64(128<<20), q.Value())
}

func TestMeant(t *testing.T) {
	for path, want := range map[string]string{
		"spec.containers[0].imagePulPolicy":           "imagePullPolicy",
		"spec.containers[0].ports[1].hostport":        "hostPort",
		"spec.containers[0].livenessProbe.httpget":    "httpGet",
		"spec.restartpolicy":                          "restartPolicy",
		"metadata.label":                              "labels",
		"spec.volumes[0].emptydir":                    "emptyDir",
		"spec.containers[0].resources.limit":          "limits",
		"spec.container":                              "containers",
		"spec.somethingElse":                          "",
		"spec.x":                                      "",
		"nowhere.at.all":                              "",
		"spec.containers[0].resources.limits[cpu].xy": "",
		"": "",
	} {
		require.Equal(t, want, plain.Meant(reflect.TypeFor[v1.Pod](), path), path)
	}
	require.Equal(t, "staticPodPath", plain.Meant(reflect.TypeFor[kubeletconfig.KubeletConfiguration](), "staticPodsPath"))
	require.Equal(t, "swapBehavior", plain.Meant(reflect.TypeFor[kubeletconfig.KubeletConfiguration](), "memorySwap.swapBehaviour"))
}
