package admit

// The detectors, told where to look.
var (
	CapacityIn    = capacity
	HugePagesIn   = hugePages
	SafeSysctlsOf = safeSysctls
)
