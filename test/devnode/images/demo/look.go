package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/flowlet/flowlet/test/devnode/images/inside"
)

// report prints what the process sees, as one line of JSON.
func report(args []string) error {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	stay := flags.Bool("stay", false, "go on until SIGTERM")
	if err := flags.Parse(args); err != nil {
		return err
	}
	term := terminated()
	if err := json.NewEncoder(os.Stdout).Encode(inside.Look(flags.Args())); err != nil {
		return err
	}
	if *stay {
		<-term
	}
	return nil
}

// signals prints every signal with its time. Only SIGKILL ends it, or the signal with a given name.
func signals(args []string) error {
	flags := flag.NewFlagSet("signals", flag.ContinueOnError)
	end := flags.String("end", "", "name of the signal that ends it, as terminated")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c := make(chan os.Signal, 16)
	signal.Notify(c)
	fmt.Println(time.Now().UTC().Format(time.RFC3339Nano), "listening")
	for s := range c {
		if s == syscall.SIGURG { // the Go runtime's own
			continue
		}
		fmt.Println(time.Now().UTC().Format(time.RFC3339Nano), s)
		if s.String() == *end {
			return nil
		}
	}
	return nil
}

// fill writes bytes to a file and ends, or stays for somebody to measure them.
func fill(args []string) error {
	flags := flag.NewFlagSet("fill", flag.ContinueOnError)
	stay := flags.Bool("stay", false, "go on until SIGTERM")
	size := flags.Int64("bytes", 1<<20, "how many")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("fill: one file")
	}
	term := terminated()
	f, err := os.Create(flags.Arg(0))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	block := make([]byte, 64<<10)
	for left := *size; left > 0; {
		n, err := f.Write(block[:min(left, int64(len(block)))])
		if left -= int64(n); err != nil {
			return fmt.Errorf("after %d bytes: %w", *size-left, err)
		}
	}
	fmt.Println("wrote", *size, "bytes")
	if *stay {
		<-term
	}
	return nil
}

// oom uses more and more memory until it is killed.
func oom([]string) error {
	const block, page = 1 << 20, 4 << 10
	for held := [][]byte{}; ; {
		b := make([]byte, block)
		for i := 0; i < len(b); i += page {
			b[i] = 1
		}
		held = append(held, b)
		if len(held)%16 == 0 {
			fmt.Println(len(held), "MiB")
		}
	}
}
