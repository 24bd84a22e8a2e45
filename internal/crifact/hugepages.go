package crifact

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// HugePages returns the bytes of huge pages in a list of requests or limits, by
// the kernel's name of the page size: 2MB for hugepages-2Mi.
func HugePages(list v1.ResourceList) map[string]uint64 {
	out := map[string]uint64{}
	for name, q := range list {
		text, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
		if !ok {
			continue
		}
		if size, err := resource.ParseQuantity(text); err == nil {
			out[pageSize(size.Value())] += uint64(max(q.Value(), 0))
		}
	}
	return out
}

// pageSize returns the kernel's name of a size of huge pages in bytes.
func pageSize(size int64) string {
	const step = 1024
	units := [...]string{"B", "KB", "MB", "GB", "TB", "PB"}
	unit := 0
	for ; size >= step && unit < len(units)-1; unit++ {
		size /= step
	}
	return fmt.Sprintf("%d%s", size, units[unit])
}
