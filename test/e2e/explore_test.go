//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
)

func TestExplore(t *testing.T) {
	a := newAgent(t, node)
	files, _ := filepath.Glob(node.Tools.Repo + "/examples/pods/*.yaml")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		a.write(filepath.Base(f), string(b))
	}
	a.start()
	a.untilPod("web", "ready", isReady)
	a.untilPod("job", "succeeded", hasSucceeded)
	a.untilPod("crash", "loops", waits("app", "CrashLoopBackOff"))
	for _, args := range [][]string{{"pods", "-o", "json"}, {"ps", "-a", "-o", "json"}} {
		out, err := a.crictl(args...)
		t.Logf("%v\n%s", err, out)
	}
	out, err := a.crictl("ps", "-aq")
	id := string(out[:64])
	out, err = a.crictl("inspect", id)
	t.Logf("%v\n%s", err, out)
	out, err = a.crictl("pods", "-q")
	id = string(out[:64])
	out, err = a.crictl("inspectp", id)
	t.Logf("%v\n%s", err, out)
	s, _ := a.run("get", "pods", "-o", "json")
	t.Log(s)
}
