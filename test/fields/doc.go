// Package fields keeps docs/fields.md true: its tests fail when the API types
// have a field that the page lacks, when the page has one that they lack, and
// when the test that a row names does not exist or does not set the field.
package fields
