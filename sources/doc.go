// Package sources is the home of the sources: one package for each thing
// outside of the agent that knows about pods or the node. It holds no code.
//
// # Writing a source
//
// A source watches one thing and says what it sees, until its context ends:
//
//  1. First all that it knows, then once that it has synced, then changes. It
//     may tear down its own pods only after it has synced, so a source that
//     cannot see (a list that failed, a directory that cannot be read) must
//     not say that it has, and must not say that something is gone.
//  2. It says facts, newest first served: what a thing is now, not what
//     happened to it. Facts that did not change are not repeated. Repetition
//     and reordering do no harm, but they cost a step each.
//  3. Values that it gives away are immutable: pods are shared by everybody.
//  4. When one UID replaces another under the same name, the old one is said
//     to be gone before the new one is set.
//  5. Run owns all goroutines that it starts and returns when they have ended.
//     It may be called again after it returned, and then begins with 1.
//  6. Time is the standard library's, everything else of the outside world is
//     behind an interface of one to three methods: the logic runs in
//     testing/synctest against a scripted world, and one test of the package
//     runs against the real one.
//  7. What a user has to know about the source (a file that does not parse, a
//     link that is down) is kept as a status that can be asked for, and logged
//     once, not at every look.
//
// A source package imports neither another source nor package stages. Sources
// of pods deliver typed values of their own; the composition root turns them
// into events.
package sources
