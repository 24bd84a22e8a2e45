// Package file is the source of static pods from a directory of manifests, or
// from a single manifest.
//
// The directory is read when inotify says that something changed, and once in
// a period besides, which is enough where inotify is not to be had. Only
// .yaml, .yml and .json files count; everything else is listed as ignored.
//
// # What a file means
//
// A file that stops being a valid manifest keeps the last pod that it was: an
// editor may be in the middle of it. Only a file that is gone takes its pod
// with it. What is wrong is in Files at once, and is logged when it has been
// so for a moment.
//
// An edit gives the pod a new UID (the old one is gone first), unless the
// manifest has a UID of its own and keeps the pod's name: then it is an
// update.
//
// # Two files, one pod
//
// A name and a UID belong to one file at a time:
//
//	running     the file whose pod was set keeps them, as long as it says the same
//	moved on    a file that was edited may take what is free; else its old pod stays
//	first seen  pods that already run on the node first, then by file name
//
// The losing file is a conflict in Files. It is tried again at every scan, so
// it takes over when the winner goes away, and never flaps.
package file
