// Package probe is the source of checks that fall due. All probes of the node
// share one heap and one timer: a container that is probed owns neither a timer
// nor a goroutine.
package probe
