package verified_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/test/e2e/verified"
)

const empty = "# Seen\n<!-- written by `make verified`, not by hand -->\nold\n<!-- end of what is written by `make verified` -->\n\n## More\n"

func seen(all ...verified.Seen) []verified.Seen {
	var l verified.Ledger
	for _, s := range all {
		l.Add(s)
	}
	return l.All()
}

func TestWhatWasSeenIsWrittenAndReadAgain(t *testing.T) {
	all := seen(
		verified.Seen{Feature: "b", Runtime: "containerd 2", Test: "TestX"},
		verified.Seen{Feature: "a", Runtime: "containerd 2", Test: "TestX"},
		verified.Seen{Feature: "a", Runtime: "containerd 1", Test: "TestOld"},
		verified.Seen{Feature: "a", Runtime: "containerd 1", Test: "TestAlso"},
		verified.Seen{Feature: "a", Runtime: "containerd 1", Test: "TestOld"},
	)
	page, err := verified.Write(empty, all)
	require.NoError(t, err)
	require.Equal(t, "# Seen\n<!-- written by `make verified`, not by hand -->\n"+
		"| feature | containerd 2 | containerd 1 |\n|---|---|---|\n| a | TestX | TestAlso TestOld |\n| b | TestX |  |\n"+
		"<!-- end of what is written by `make verified` -->\n\n## More\n", page)
	again, err := verified.Write(page, all)
	require.NoError(t, err)
	require.Equal(t, page, again)
	claims, err := verified.Claims(page)
	require.NoError(t, err)
	require.ElementsMatch(t, all, claims)
}

func TestClaimsThatNobodyHasSeenAreFound(t *testing.T) {
	page, err := verified.Write(empty, seen(
		verified.Seen{Feature: "a", Runtime: "containerd 2.4.2", Test: "TestX"}, verified.Seen{Feature: "b", Runtime: "containerd 2.4.2", Test: "TestX"}))
	require.NoError(t, err)
	unseen, err := verified.Unseen(page, seen(verified.Seen{Feature: "a", Runtime: "containerd 2.4.3", Test: "TestX"}, verified.Seen{Feature: "c", Runtime: "containerd 2.4.3", Test: "TestX"}))
	require.NoError(t, err)
	require.Equal(t, []verified.Seen{{Feature: "b", Runtime: "containerd 2.4.2", Test: "TestX"}}, unseen)
}

func TestRunOfSomeTestsLeavesTheOthersAlone(t *testing.T) {
	other := verified.Seen{Feature: "b", Runtime: "containerd 2", Test: "TestOther"}
	page, err := verified.Write(empty, seen(other, verified.Seen{Feature: "a", Runtime: "containerd 2", Test: "TestX"}))
	require.NoError(t, err)
	now := verified.Seen{Feature: "c", Runtime: "containerd 2", Test: "TestX"}
	joined, err := verified.Join(page, seen(now))
	require.NoError(t, err)
	require.Equal(t, []verified.Seen{other, now}, joined)
}

func TestPageWithoutPlaceIsRefused(t *testing.T) {
	_, err := verified.Write("# Seen\n", nil)
	require.ErrorContains(t, err, "docs/verified.md")
	_, err = verified.Unseen("# Seen\n", nil)
	require.ErrorContains(t, err, "docs/verified.md")
}

// What the page of this checkout claims is written by tests that are there.
func TestEveryClaimNamesATest(t *testing.T) {
	page, err := os.ReadFile("../../../docs/verified.md")
	require.NoError(t, err)
	claims, err := verified.Claims(string(page))
	require.NoError(t, err)
	require.NotEmpty(t, claims)
	sources, err := filepath.Glob("../*_test.go")
	require.NoError(t, err)
	tests := map[string]bool{}
	for _, path := range sources {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
	}
	for _, c := range claims {
		require.True(t, tests[c.Test], "%q on %s is claimed to be seen by %s, which is not a test of test/e2e", c.Feature, c.Runtime, c.Test)
	}
}
