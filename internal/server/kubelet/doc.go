// Package kubelet answers the paths of the kubelet's HTTP API that are about
// the pods of the node: /pods, /containerLogs, /exec, /attach, /portForward
// and /run, with the kubelet's query parameters, status codes and texts. Who
// may ask is decided by who mounts the handler.
//
// Logs are read from the files that the runtime writes, so they can be read
// while the runtime is away. Streams are proxied to the runtime. Neither what
// is logged nor what is typed or run gets into a log of the agent.
package kubelet
