package ui

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/explain/picture"
)

//go:embed pages
var sources embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"pod":    func(ref string) string { return "pod?pod=" + url.QueryEscape(ref) },
	"anchor": anchor,
	"class":  func(s explain.Stage) string { return picture.Class(s) },
	"lower":  strings.ToLower,
	"ms":     func(t time.Time) int64 { return t.UnixMilli() },
	"ago":    ago,
	"short":  explain.Short,
	"join":   strings.Join,
	"add":    func(a, b int) int { return a + b },
}).ParseFS(sources, "pages/*.html"))

// render writes the document, and renderBody what of it changes.
func render(w io.Writer, p page) error {
	return run(w, "layout.html", struct {
		page
		Data any
	}{p, body{p}})
}

func renderBody(w io.Writer, p page) error { return run(w, "body.html", body{p}) }

func run(w io.Writer, name string, data any) error {
	if err := pages.ExecuteTemplate(w, name, data); err != nil {
		return fmt.Errorf("making the page: %w", err)
	}
	return nil
}

// body lets the templates choose the one that fits.
type body struct{ page }

// HTML renders the page's own template.
func (b body) HTML() (template.HTML, error) {
	var out strings.Builder
	err := run(&out, b.page.body+".html", struct {
		page
		Data any
	}{b.page, b.data})
	return template.HTML(out.String()), err //nolint:gosec // made by a template
}

// anchor is the ID of a stage's row.
func anchor(stage string) string {
	return "stage-" + strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			if (r < '0' || r > '9') && (r < 'A' || r > 'Z') && r != '.' {
				return '_'
			}
		}
		return r
	}, stage)
}

// ago is an age that the script counts on.
func ago(at, since time.Time) template.HTML {
	if since.IsZero() {
		return "–"
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" data-since="%d">%s</time>`, //nolint:gosec // numbers and a duration
		since.UTC().Format(time.RFC3339Nano), since.UnixMilli(), explain.Short(max(0, at.Sub(since)))))
}
