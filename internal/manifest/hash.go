package manifest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/dump"
)

// ContainerHash is the hash that says whether a running container is still
// the one of the spec, as the kubelet computes it and writes it into the
// annotation io.kubernetes.container.hash: name and image only, in lower-case
// hex. Running containers of a kubelet are recognised by it.
func ContainerHash(c *v1.Container) string {
	spelt, err := json.Marshal(map[string]string{"name": c.Name, "image": c.Image})
	if err != nil {
		panic(fmt.Sprintf("two strings do not marshal: %v", err))
	}
	h := fnv.New32a()
	_, _ = io.WriteString(h, dump.ForHash(spelt))
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}
