package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func serve(args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	addr := flags.String("addr", ":8080", "address to listen on")
	dir := flags.String("dir", "", "directory to serve")
	text := flags.String("text", "hello\n", "what to answer without a directory")
	delay := flags.Duration("delay", 0, "time before listening")
	if err := flags.Parse(args); err != nil {
		return err
	}
	term := terminated()
	select {
	case <-time.After(*delay):
	case <-term:
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(filepath.Join(*dir, "unhealthy")); *dir != "" && err == nil {
			http.Error(w, "unhealthy", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	if *dir != "" {
		mux.Handle("/", http.FileServer(http.Dir(*dir)))
	} else {
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, *text) })
	}
	server := &http.Server{Addr: *addr, Handler: logRequests(mux), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-term
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	}()
	fmt.Println("serving on", *addr)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// logRequests prints a line for each request, but for those of probes.
func logRequests(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			fmt.Println(r.RemoteAddr, r.Method, r.URL.Path)
		}
		h.ServeHTTP(w, r)
	})
}

func get(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("get: one URL")
	}
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(args[0])
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

func cat(args []string) error {
	if len(args) == 0 {
		_, err := io.Copy(os.Stdout, os.Stdin)
		return err
	}
	for _, name := range args {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func list(args []string) error {
	dir := "."
	if len(args) > 0 {
		dir = args[0]
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		fmt.Println(e.Name())
	}
	return err
}

func printEnv([]string) error {
	env := os.Environ()
	slices.Sort(env)
	fmt.Println(strings.Join(env, "\n"))
	return nil
}

func printID([]string) error {
	groups, err := os.Getgroups()
	fmt.Printf("uid=%d gid=%d groups=%d pid=%d\n", os.Getuid(), os.Getgid(), groups, os.Getpid())
	return err
}

func exitWith(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("exit: one code")
	}
	code, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	return exit(code)
}
