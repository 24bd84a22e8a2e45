// Command flowlet is a Kubernetes node agent. See `flowlet help`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
)

// gcPercent lets the heap grow to three times what lives before it is collected, where the runtime's default is twice. An
// agent's live heap is small (some 20 KiB per pod), and its garbage comes in bursts when many pods start: `flowlet bench start` shows
// a tenth more pods per second for 20 MiB more memory at the peak of 500 pods. GOGC overrules it.
const gcPercent = 200

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args))
}

// run returns the exit code: 0, 1 for an error, or what an exitCode says.
func run(ctx context.Context, args []string) int {
	cmd := root()
	cmd.SetArgs(arguments(args))
	err := cmd.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintln(os.Stderr, "flowlet:", err)
	return 1
}

// exitCode is an error that has nothing to say but the exit code.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// arguments makes a kubelet's command line one of ours: called as kubelet, or
// with a first argument that is a flag, this is `flowlet run`.
func arguments(args []string) []string {
	rest := args[1:]
	kubelet := filepath.Base(args[0]) == "kubelet"
	flag := len(rest) > 0 && strings.HasPrefix(rest[0], "-") && rest[0] != "-h" && rest[0] != "--help"
	if kubelet || flag {
		return append([]string{"run"}, rest...)
	}
	return rest
}
