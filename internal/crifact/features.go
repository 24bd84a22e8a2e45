package crifact

import (
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// Features returns what a runtime says it can do. A handler that says nothing
// of a feature lacks it.
func Features(resp *runtimeapi.StatusResponse) pod.RuntimeFeatures {
	f := pod.RuntimeFeatures{Known: true, StrictGroups: resp.GetFeatures().GetSupplementalGroupsPolicy()}
	for _, h := range resp.GetRuntimeHandlers() {
		if f.Handlers == nil {
			f.Handlers = map[string]pod.HandlerFeatures{}
		}
		f.Handlers[h.GetName()] = pod.HandlerFeatures{
			RecursiveReadOnly: h.GetFeatures().GetRecursiveReadOnlyMounts(),
			UserNamespaces:    h.GetFeatures().GetUserNamespaces(),
		}
	}
	return f
}
