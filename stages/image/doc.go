// Package image does the work of the image stages: it looks whether an image
// is on the node and pulls it. When that is to be done, and that pods which
// want the same image share one pull, is decided elsewhere.
package image
