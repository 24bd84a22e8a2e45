package explain

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// width is the number of columns of a terminal that all text fits in, errors
// and names apart.
const width = 80

// short renders a length of time in at most 6 characters: 12ms, 1.23s, 45.6s, 3m04s, 2h05m, 3d04h.
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + short(-d)
	case d < time.Millisecond:
		return fmt.Sprintf("%dµs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.2fs", d.Truncate(10*time.Millisecond).Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// ago renders how long something has lasted; a time of zero is unknown.
func ago(now, since time.Time) string {
	if since.IsZero() {
		return "?"
	}
	return short(max(0, now.Sub(since)))
}

// clip shortens s to n characters, with an ellipsis.
func clip(s string, n int) string {
	s = strings.ReplaceAll(s, "\n", " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(0, n-1)]) + "…"
}

// pad fills s up to n characters.
func pad(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
}

// wrap breaks text into lines of at most n characters, at spaces where there
// are any; words that are longer stay whole, so that they can be copied.
func wrap(text string, n int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > n:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// indent writes text below a heading.
func indent(b *strings.Builder, by int, text string) {
	for _, line := range wrap(text, width-by) {
		b.WriteString(strings.Repeat(" ", by) + line + "\n")
	}
}

// few joins words, the first n of them.
func few(words []string, n int) string {
	if len(words) <= n {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:n], ", "), len(words)-n)
}

// Short renders a length of time in at most 6 characters.
func Short(d time.Duration) string { return short(d) }
