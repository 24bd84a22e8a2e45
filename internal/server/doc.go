// Package server is what the agent answers: the local socket that the read
// commands talk to, and /healthz. It reads what the agent shares and changes
// nothing.
//
// The local API is JSON over HTTP on a unix socket that only the agent's user
// can open. A failed request is a status of 400 or above with a JSON Problem.//
// Its JSON forms, beside those of packages explain and journal, are the structs
// with their tags; times are RFC 3339:
//
//	flowlet.dev/node/v1      Node
//	flowlet.dev/why-node/v1  NodeReport
//	flowlet.dev/policy/v1    Policy
package server
