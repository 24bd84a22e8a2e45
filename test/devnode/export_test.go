package devnode

// FreePorts finds loopback addresses.
var FreePorts = freePorts
