// Package plain says in plain words what the decoders of configuration and
// manifests found wrong. What they say themselves is about Go's types and
// about regular expressions, which a reader of YAML does not know.
package plain

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Quantity says what a quantity looks like.
const Quantity = "must be a number, alone or with one of m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi and Ei behind it, such as 500m or 128Mi"

var mismatch = regexp.MustCompile(`^json: cannot unmarshal (\S+)(?: (\S+))? into Go (?:struct field \S+|value) of type (\S+)$`)

// Decode says why a value cannot be decoded, in one line without the value's
// path. value is what was written there, nil when that is not known; of it
// nothing is shown but what should have been a quantity or a number, since it
// may be a secret. Errors that are plain already, or of a form that is not
// known, are given as they are.
func Decode(err error, value any) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if text == resource.ErrFormatWrong.Error() || text == resource.ErrNumeric.Error() || text == resource.ErrSuffix.Error() {
		return quantity(value)
	}
	m := mismatch.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	is, must := written(m[1], m[2]), wanted(m[3])
	if m[3] == "int32" && m[2] != "" {
		must += " of 32 bits"
	}
	if must == "a string" && (m[1] == "number" || m[1] == "bool") {
		must += ": put it in quotes"
	}
	return fmt.Sprintf("is %s, must be %s", is, must)
}

// Parse parses a quantity. Its error is a sentence about the text, without the
// text.
func Parse(text string) (resource.Quantity, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		err = errors.New(Quantity)
	}
	return q, err
}

func quantity(value any) string {
	if text, ok := value.(string); ok && len(text) <= 40 {
		return fmt.Sprintf("%q is no quantity: it %s", text, Quantity)
	}
	return "is no quantity: it " + Quantity
}

func written(kind, detail string) string {
	switch kind {
	case "string":
		return "a string"
	case "number":
		if detail != "" { // a number of the wrong kind or size
			return "the number " + detail
		}
		return "a number"
	case "bool":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "an object"
	}
	return kind
}

// wanted names a type of Go as a writer of YAML knows it.
func wanted(goType string) string {
	t := strings.TrimPrefix(goType, "*")
	switch {
	case t == "string":
		return "a string"
	case t == "bool":
		return "true or false"
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return "an integer"
	case strings.HasPrefix(t, "float"):
		return "a number"
	case t == "[]string":
		return "a list of strings"
	case strings.HasPrefix(t, "[]"):
		return "a list"
	case t == "map[string]string":
		return "an object whose values are strings"
	case t == "map[string]bool":
		return "an object whose values are true or false"
	}
	return "an object"
}
