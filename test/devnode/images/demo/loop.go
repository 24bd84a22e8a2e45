package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// terminated is closed by SIGTERM or SIGINT. The first process of a container ignores signals that it does not handle.
func terminated() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGINT)
	return c
}

func sleep(args []string) error {
	flags := flag.NewFlagSet("sleep", flag.ContinueOnError)
	ignore := flags.Bool("ignore-term", false, "go on after SIGTERM")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var done <-chan time.Time
	if flags.NArg() > 0 {
		d, err := duration(flags.Arg(0))
		if err != nil {
			return err
		}
		done = time.After(d)
	}
	for term := terminated(); ; {
		select {
		case <-done:
			return nil
		case <-term:
			if !*ignore {
				return nil
			}
			fmt.Println("ignoring the signal")
		}
	}
}

// duration takes the seconds of sleep(1), too.
func duration(s string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return time.Duration(n * float64(time.Second)), nil
	}
	return time.ParseDuration(s)
}

func printLines(args []string) error {
	flags := flag.NewFlagSet("log", flag.ContinueOnError)
	every := flags.Duration("every", time.Second, "time between lines")
	n := flags.Int("n", 0, "number of lines, 0 for no end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, i := strings.Join(flags.Args(), " "), 0
	return repeat(*every, func() (bool, error) {
		i++
		fmt.Println(i, text)
		return i == *n, nil
	})
}

func write(args []string) error {
	flags := flag.NewFlagSet("write", flag.ContinueOnError)
	every := flags.Duration("every", 0, "time between writes, 0 for one write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		return fmt.Errorf("write: a file and a text")
	}
	text, i := strings.Join(flags.Args()[1:], " "), 0
	return repeat(*every, func() (bool, error) {
		i++
		line := text + "\n"
		if *every > 0 {
			line = fmt.Sprintf("%s (%d, %s)\n", text, i, time.Now().UTC().Format(time.TimeOnly))
		}
		return *every == 0, os.WriteFile(flags.Arg(0), []byte(line), 0o644)
	})
}

func follow(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("follow: one file")
	}
	var last []byte
	return repeat(200*time.Millisecond, func() (bool, error) {
		b, err := os.ReadFile(args[0])
		if err == nil && !bytes.Equal(b, last) {
			last = b
			fmt.Printf("read: %s", b)
		}
		return false, nil
	})
}

func job(args []string) error {
	flags := flag.NewFlagSet("job", flag.ContinueOnError)
	steps := flags.Int("steps", 3, "number of steps")
	every := flags.Duration("every", time.Second, "time for a step")
	failFirst := flags.String("fail-first", "", "fail when this file is missing, and make it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *failFirst != "" {
		f, err := os.OpenFile(*failFirst, os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			fmt.Println("the first try fails")
			return errors.Join(f.Close(), exit(1))
		}
	}
	i := 0
	return repeat(*every, func() (bool, error) {
		i++
		fmt.Printf("step %d of %d\n", i, *steps)
		return i >= *steps, nil
	})
}

func crash(args []string) error {
	flags := flag.NewFlagSet("crash", flag.ContinueOnError)
	after := flags.Duration("after", 2*time.Second, "time until the crash")
	code := flags.Int("code", 1, "exit code")
	if err := flags.Parse(args); err != nil {
		return err
	}
	select {
	case <-time.After(*after):
	case <-terminated():
		return nil
	}
	if flags.NArg() > 0 {
		message := strings.Join(flags.Args(), " ") + "\n"
		fmt.Fprint(os.Stderr, message)
		_ = os.WriteFile("/dev/termination-log", []byte(message), 0o644) // the pod's default path, shown in its status
	}
	return exit(*code)
}

// repeat calls do at once and then at every interval, until it is done, fails, or the process is told to end.
func repeat(every time.Duration, do func() (bool, error)) error {
	for term := terminated(); ; {
		if done, err := do(); done || err != nil {
			return err
		}
		select {
		case <-time.After(every):
		case <-term:
			return nil
		}
	}
}

// pause is the first process of a sandbox.
func pause([]string) error {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for term := terminated(); ; {
		select {
		case <-children:
			for {
				if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
					break
				}
			}
		case <-term:
			return nil
		}
	}
}
