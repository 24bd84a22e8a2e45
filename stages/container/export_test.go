package container

// Expand is tested on its own: its rules are the API's.
var Expand = expand
