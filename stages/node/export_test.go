package node

import "context"

// Rotation is one run of the rotator on a disk of the test's.
func Rotation(ctx context.Context, limits LogLimits, runtime LogRuntime, d Files, log Log) error {
	r := rotator{limits: limits, runtime: runtime, disk: d}
	return r.rotate(ctx, log)
}

type (
	Files = files
	Disk  = disk
)
