package crifact

import "strings"

// Expand replaces each $(NAME) whose name lookup knows. One that it does not
// know stays as it is, and $$ stands for one $, so $$(NAME) is never replaced.
func Expand(text string, lookup func(name string) (string, bool)) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		switch {
		case strings.HasPrefix(after, "$"):
			out.WriteByte('$')
			text = after[1:]
			continue
		case strings.HasPrefix(after, "("):
			if name, rest, closed := strings.Cut(after[1:], ")"); closed {
				if value, known := lookup(name); known {
					out.WriteString(value)
				} else {
					out.WriteString("$(" + name + ")")
				}
				text = rest
				continue
			}
		}
		out.WriteByte('$')
		text = after
	}
}
