package volume

// RemoveTree is tested by itself: it is what must never go wrong.
var RemoveTree = removeTree
