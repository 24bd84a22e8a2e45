package fields_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

const (
	root = "../.."
	page = root + "/docs/fields.md"
)

var update = flag.Bool("update", false, "write the rows of fields that docs/fields.md lacks, to be filled in")

// row is one field on the page.
type row struct {
	field, state, stage, test, note string
}

// States of a field.
const (
	yes         = "yes"         // it acts, or flowlet has nothing to do with it and says so in the note
	later       = "later"       // it needs the API server or a storage driver
	refused     = "refused"     // the note is the message
	unsupported = "unsupported" // the note is the reason
)

func (r row) String() string {
	return "| " + strings.Join([]string{r.field, r.state, r.stage, r.test, r.note}, " | ") + " |"
}

// readPage returns the rows by TYPE.FIELD, the sections in order, and what is
// above the first one.
func readPage(t *testing.T) (rows map[string]row, sections []string, head string) {
	t.Helper()
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	rows = map[string]row{}
	section := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "## "); ok {
			section = name
			sections = append(sections, name)
		}
		switch cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|"); {
		case section == "":
			head += line + "\n"
		case !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| field"):
		default:
			require.Len(t, cells, 5, "docs/fields.md: %s", line)
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			key := section + "." + strings.Trim(cells[0], "`")
			require.NotContains(t, rows, key, "docs/fields.md has it twice")
			rows[key] = row{cells[0], cells[1], cells[2], cells[3], cells[4]}
		}
	}
	return rows, sections, head
}

// open: what a field holds has rows of its own where the field acts.
func open(rows map[string]row) func(apiField) bool {
	return func(f apiField) bool { r := rows[f.String()]; return r.state == yes && r.stage != "—" }
}

func TestPageHasEveryField(t *testing.T) {
	rows, _, head := readPage(t)
	fields := apiFields(open(rows))
	if *update {
		write(t, head, fields, rows)
		return
	}
	unknown := maps.Clone(rows)
	for _, f := range fields {
		require.Contains(t, rows, f.String(), "a field that docs/fields.md lacks: decide what becomes of it (go test ./test/fields -update adds an empty row)")
		delete(unknown, f.String())
	}
	require.Empty(t, slices.Sorted(maps.Keys(unknown)), "docs/fields.md has fields that the API types lack, or whose owner does not act")
}

func write(t *testing.T, head string, fields []apiField, rows map[string]row) {
	t.Helper()
	var out strings.Builder
	out.WriteString(strings.TrimRight(head, "\n") + "\n")
	section := ""
	for _, f := range fields {
		if f.section != section {
			section = f.section
			fmt.Fprintf(&out, "\n## %s\n\n| field | state | stage | test | |\n|---|---|---|---|---|\n", section)
		}
		r, ok := rows[f.String()]
		if !ok {
			r = row{field: "`" + f.json + "`"}
		}
		out.WriteString(r.String() + "\n")
	}
	require.NoError(t, os.WriteFile(page, []byte(out.String()), 0o644))
}

func TestRowsAreTrue(t *testing.T) {
	rows, _, _ := readPage(t)
	code := readTests(t, root)
	for _, f := range apiFields(open(rows)) {
		t.Run(f.String(), func(t *testing.T) {
			r := rows[f.String()]
			require.Contains(t, []string{yes, later, refused, unsupported}, r.state)
			if r.state != yes || r.stage == "—" {
				require.NotEmpty(t, r.note, "a %s field says why, or with which message", r.state)
			}
			dir, name, _ := strings.Cut(strings.ReplaceAll(r.test, "`", ""), " ")
			require.Contains(t, code[dir], name, "no such test")
			require.True(t, code[dir][name].mentions(f), "%s does not set it", r.test)
			if r.state == refused {
				require.True(t, code[dir][name].contains(strings.Trim(r.note, "`")), "%s does not expect that message", r.test)
			}
		})
	}
}

func TestWhatATestSets(t *testing.T) {
	own := readTests(t, root)["test/fields"]["TestWhatATestSets"]
	sysctl := func(goName string) apiField {
		return apiField{section: "Sysctl", json: strings.ToLower(goName), goName: goName, holders: map[string]bool{"sysctls": true}}
	}
	_ = []v1.Sysctl{{Name: "in a literal"}}
	require.True(t, own.mentions(sysctl("Name")))
	require.False(t, own.mentions(sysctl("Value")))
	require.True(t, own.mentions(apiField{section: "HostAlias", json: "ip", holders: map[string]bool{"hostAliases": true}}), "hostAliases: [{ip: in a manifest}]")
	require.False(t, own.mentions(apiField{section: "Other", json: "ip", holders: map[string]bool{"other": true}}), "held by something else")
}
