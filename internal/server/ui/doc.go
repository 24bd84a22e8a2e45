// Package ui is the page: pods and what blocks them, a pod's graph and the
// waterfall of its last start, the node with its chores, the queues.
//
// Everything is HTML and SVG that the server makes, and is read without
// JavaScript. With it, a page keeps a stream of server-sent events open, in
// which the same HTML comes again when something has changed (Bell), and
// changes in place. Links are relative, so that the page works behind a proxy
// under any prefix. It reads and changes nothing. Who may see it is decided in
// front of it: by package ui/gate on a loopback address, by the server's
// authentication elsewhere.
package ui
