package bench

// Width is the widest line of a report.
const Width = width
