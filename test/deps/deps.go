// Package deps keeps modules required that are about to be used.
package deps

import (
	_ "k8s.io/apimachinery/pkg/util/proxy"   // upgrade-aware proxy
	_ "k8s.io/client-go/tools/remotecommand" // exec, attach and port-forward of the command line
	_ "k8s.io/cri-client/pkg/logs"           // reading of container logs
	_ "k8s.io/streaming/pkg/httpstream"      // upgrades
)
