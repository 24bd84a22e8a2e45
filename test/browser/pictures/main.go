// Command pictures makes the pictures of the documentation:
//
//	pictures FLOWLET DIRECTORY
//
// FLOWLET is the binary; PNG files go into DIRECTORY.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/flowlet/flowlet/test/browser"
)

// shots are parts of pages.
var shots = []struct{ name, path, part string }{
	{"pods", "./", "main"},
	{"graph", "pod?pod=shop-node-1", "section:has(#graph-title)"},
	{"start", "pod?pod=shop-node-1", "section:has(#trace-title)"},
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pictures FLOWLET DIRECTORY")
		os.Exit(2)
	}
	if err := draw(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func draw(flowlet, directory string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "flowlet-pictures")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	site, err := browser.Start(ctx, flowlet, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.Stop()) }()
	tab, stop, err := browser.Chromium(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if err := site.Until(ctx, "shop-node-1", "3/3"); err != nil {
		return err
	}
	if err := chromedp.Do(tab, chromedp.Navigate(site.URL), chromedp.WaitVisible("table.list")); err != nil {
		return err
	}
	base, err := chromedp.Run(tab, chromedp.Location())
	if err != nil {
		return err
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, s := range shots {
			name := s.name + "-" + scheme
			if err := chromedp.Do(tab, browser.Look(1560, 900, scheme), chromedp.Navigate(base+s.path), chromedp.WaitVisible(`#live[data-state="on"]`)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			png, err := chromedp.Run(tab, chromedp.Screenshot(s.part))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if err := os.WriteFile(filepath.Join(directory, name+".png"), png, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
