// Package http is the source of static pods from a URL that serves one Pod or
// a list of pods.
//
// The URL is asked once in a period. Only an answer that is understood as a
// whole changes anything: an error, a status other than 200, an empty body or
// one bad pod in a list leave all pods as they were, and show in State. To
// remove all pods on purpose, serve [] or a list whose items are empty. An
// answer is asked for only if it changed, where the server says what its
// version is (ETag, Last-Modified).
//
// A pod that says something else has a new UID (the old one is gone first),
// unless it has a UID of its own and keeps its name: then it is an update. Two
// pods of a list that have one name or one UID are a conflict: the one that is
// set keeps it, then one that runs on the node, then the first of the list.
package http
