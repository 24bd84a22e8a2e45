// Command demo is all that the example and test images contain: one static program with the few commands that pods need to
// show something, called by its first argument or, through links in /bin, by its name.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// command does its work with its arguments. A nil error is exit code 0, an exit value its code, another error 1.
type command struct {
	usage string
	run   func(args []string) error
}

// exit is an error that only sets the exit code.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func commands() map[string]command {
	return map[string]command{
		"serve":   {"serve [-addr :8080] [-dir DIR] [-text TEXT] [-delay D]: web server; /healthz fails while DIR/unhealthy exists", serve},
		"sleep":   {"sleep [-ignore-term] [DURATION]: does nothing, for ever without a duration", sleep},
		"log":     {"log [-every 1s] [-n N] TEXT: prints numbered lines, for ever without -n", printLines},
		"write":   {"write [-every D] FILE TEXT: writes the file, again and again with -every", write},
		"follow":  {"follow FILE: prints the file whenever it changes", follow},
		"cat":     {"cat [FILE...]: prints files, or standard input", cat},
		"ls":      {"ls DIR: lists a directory", list},
		"env":     {"env: prints the environment", printEnv},
		"id":      {"id: prints user, groups and process", printID},
		"job":     {"job [-steps 3] [-every 1s] [-fail-first FILE]: prints its progress and completes", job},
		"crash":   {"crash [-after 2s] [-code 1] [MESSAGE]: ends in failure", crash},
		"exit":    {"exit CODE: ends at once", exitWith},
		"get":     {"get URL: prints what a web server answers", get},
		"report":  {"report [-stay] [PATH...]: prints all that it sees, as JSON", report},
		"signals": {"signals [-end NAME]: prints each signal with its time, and goes on", signals},
		"fill":    {"fill [-stay] [-bytes N] FILE: writes so many bytes", fill},
		"oom":     {"oom: takes memory until it is killed", oom},
		"size":    {"size: prints rows and columns of its terminal whenever they change", printSize},
		"pause":   {"pause: holds a pod's namespaces and reaps", pause},
	}
}

func main() {
	args := os.Args
	if name := filepath.Base(args[0]); name != "demo" {
		args = append([]string{"demo", name}, args[1:]...)
	}
	if err := run(args[1:]); err != nil {
		if code := exit(0); errors.As(err, &code) {
			os.Exit(int(code))
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	all := commands()
	if len(args) > 0 {
		if c, ok := all[args[0]]; ok {
			return c.run(args[1:])
		}
	}
	var usage []string
	for _, c := range all {
		usage = append(usage, "  "+c.usage)
	}
	slices.Sort(usage)
	return fmt.Errorf("usage:\n%s", strings.Join(usage, "\n"))
}
