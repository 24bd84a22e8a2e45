//go:build e2e

package devnode_test

import (
	"io"
	"net/http"
	"time"
)

// get is what a web server answers, or the error.
func get(url string) string {
	resp, err := (&http.Client{Timeout: time.Second}).Get(url)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, _ := io.ReadAll(resp.Body)
	return string(b)
}
