package main

import (
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// printSize ends when its terminal does.
func printSize([]string) error {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	for {
		s, err := unix.IoctlGetWinsize(int(os.Stdin.Fd()), unix.TIOCGWINSZ)
		if err != nil {
			return err
		}
		fmt.Println(s.Row, s.Col)
		<-changed
	}
}
