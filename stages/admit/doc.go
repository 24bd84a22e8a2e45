// Package admit decides which pods a node takes: a ledger of what is
// requested, and the predicates of a node that stands alone.
package admit
