// Package server is what the agent answers: the local socket that the read
// commands talk to, and /healthz. It reads what the agent shares and changes
// nothing.
//
// The local API is JSON over HTTP on a unix socket that only the agent's user
// can open. A failed request is a status of 400 or above with a JSON Problem.
package server
