// Command devnode is what the make targets stand on: it prepares the machine, builds tools and runs a private node with
// flowlet and the example pods.
//
//	devnode deps    install the packages that builds and tests need (root)
//	devnode tools   build containerd, runc, the CNI plugins and crictl into the cache
//	devnode run     run flowlet with the example pods until Ctrl-C; RUN_FOR=60s ends by itself, RUNTIME=sim needs no root,
//	                JAEGER=1 sends traces to a Jaeger of its own
//	devnode sweep   take away what a killed run left behind
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/flowlet/flowlet/test/devnode/private"
	"github.com/flowlet/flowlet/test/devnode/sweep"
	"github.com/flowlet/flowlet/test/devnode/toolbox"
)

func main() {
	// A child that is to die with this process dies with the thread that started it: keep that one.
	runtime.LockOSThread()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: devnode deps|tools|run|sweep")
		os.Exit(2)
	}
	os.Exit(run(os.Args[1]))
}

func run(command string) int {
	if private.Started() {
		return private.Run("", func(st sweep.State) int {
			return session(func(ctx context.Context) error { return runOnContainerd(ctx, st) })
		})
	}
	switch command {
	case "deps":
		return session(func(ctx context.Context) error { return toolbox.Packages(ctx, os.Stderr) })
	case "tools":
		return session(func(ctx context.Context) error {
			_, err := toolbox.Ensure(ctx, os.Stderr)
			return err
		})
	case "sweep":
		return session(func(context.Context) error { return private.Sweep(workDir()) })
	case "run":
		return runHere()
	}
	fmt.Fprintf(os.Stderr, "devnode: no command %q: deps, tools, run or sweep\n", command)
	return 2
}

// session calls do with a context that ends with a signal, and turns its error into an exit code.
func session(do func(context.Context) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	if err := do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "devnode:", err)
		return 1
	}
	return 0
}
