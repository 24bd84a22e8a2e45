// Package archtest holds the rules of the house as tests: which package may import which, and a few habits that
// a reader would otherwise have to check by eye. The rules are the tables in rules_test.go; docs/architecture.md tells why.
//
// The package has no code outside its tests.
package archtest
