// Package dag is flowlet's workflow engine. It knows no pods, no runtime and
// no tracing: a caller hands it, per key, the whole graph of what is to be
// done, again and again as facts change, and the engine starts, cancels,
// retries and remembers.
//
// It has two halves. [Decide] is pure: from the time, the memo of what
// happened so far and a graph it says what each stage's entry becomes, what
// to start and what to cancel. [Engine] carries that out with bounded
// concurrency: class queues, deadlines, back-off, owned objects and calls
// that never return. Planning, explaining, replaying and property tests are
// the same Decide.
package dag
