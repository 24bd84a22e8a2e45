// Package journal remembers what happened to each pod: which events came in,
// how its stages moved and which calls they made.
//
// The history of a pod is cut into episodes: its start, each restart of a
// container, its end, and the quiet time between them. An episode is what a
// trace is made of. Everything is bounded: an episode by its number of
// records, the quiet time of a pod by a short tail, and all closed episodes
// together by their number, so that a pod at rest costs little memory.
//
// A [Journal] is an observer of the engine. Its methods take one short lock,
// append a few words and return; they may be called concurrently and with the
// engine's lock held.
package journal
