// Package remote reads logs, runs commands and forwards ports through an
// agent, over the agent's local socket. It is the other side of package
// kubelet and speaks as clients of Kubernetes do: WebSocket, or SPDY with a
// server that does not know it.
package remote
