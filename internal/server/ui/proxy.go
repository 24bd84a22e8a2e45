package ui

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/flowlet/flowlet/internal/server"
)

// Proxy returns the page of the agent that c asks. When none answers it says
// so, in the look of the page.
func Proxy(c *server.Client) http.Handler {
	files := Static()
	return &httputil.ReverseProxy{
		Transport: c.Transport(),
		ErrorLog:  log.New(io.Discard, "", 0), // a stream that ends with its page is no error
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "flowlet"}) },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			switch {
			case context.Cause(r.Context()) != nil: // the browser is gone, or this program ends
			case strings.HasPrefix(r.URL.Path, Path+"static/"):
				files.ServeHTTP(w, r)
			default:
				Problem(w, http.StatusBadGateway, "The agent does not answer", c.Unreachable(err).Error())
			}
		},
	}
}
