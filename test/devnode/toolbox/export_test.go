package toolbox

// ID is what set.id makes of a set with these tags and its module in dir.
func ID(tags, dir string) (string, error) { return set{name: "x", tags: tags}.id(dir) }

// Cached returns a directory of the cache.
var Cached = cached
