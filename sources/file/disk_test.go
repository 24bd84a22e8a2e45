package file_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/manifest"
	"github.com/flowlet/flowlet/sources/file"
)

// onDisk runs a source on a real directory with the kernel's notices. The
// period is an hour: what is seen, inotify told.
func onDisk(t *testing.T, path string) (next func() manifest.Update) {
	t.Helper()
	ctx, stop := context.WithCancelCause(context.WithoutCancel(t.Context()))
	updates, done := make(chan manifest.Update, 100), make(chan error, 1)
	source := file.New(file.Config{Path: path, NodeName: "n1", Period: time.Hour})
	go func() { done <- source.Run(ctx, func(u manifest.Update) { updates <- u }) }()
	t.Cleanup(func() {
		stop(errors.New("test is over"))
		require.EqualError(t, <-done, "test is over")
	})
	next = func() manifest.Update {
		t.Helper()
		select {
		case u := <-updates:
			return u
		case <-time.After(10 * time.Second):
			require.FailNow(t, "nothing was seen")
			return manifest.Update{}
		}
	}
	require.Equal(t, manifest.Synced, next().Kind)
	return next
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestRealDirectory(t *testing.T) {
	dir := t.TempDir()
	next := onDisk(t, dir)
	path := filepath.Join(dir, "a.yaml")

	write(t, path, pod("a", "a:1"))
	u := next()
	require.Equal(t, manifest.Set, u.Kind)
	require.Equal(t, path, u.Path)

	write(t, path+".tmp", pod("a", "a:2"))
	require.NoError(t, os.Rename(path+".tmp", path), "atomic rename into place")
	require.Equal(t, manifest.Gone, next().Kind)
	require.Equal(t, "a:2", next().Pod.Spec.Containers[0].Image)

	require.NoError(t, os.Remove(path))
	require.Equal(t, manifest.Gone, next().Kind)
}

func TestRealSingleFileIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pod.yaml")
	next := onDisk(t, path) // not there yet: looked for every second
	write(t, path, pod("a", "a:1"))
	require.Equal(t, "a:1", next().Pod.Spec.Containers[0].Image)
	write(t, path+".new", pod("a", "a:2"))
	require.NoError(t, os.Rename(path+".new", path))
	require.Equal(t, manifest.Gone, next().Kind)
	require.Equal(t, "a:2", next().Pod.Spec.Containers[0].Image)
}

// The way in which a mounted config map changes: files are links through
// ..data, which is swapped as a whole.
func TestRealConfigMapLinks(t *testing.T) {
	dir := t.TempDir()
	version := func(name, image string) {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		write(t, filepath.Join(dir, name, "a.yaml"), pod("a", image))
		require.NoError(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	next := onDisk(t, dir)
	version("..v1", "a:1")
	require.NoError(t, os.Symlink("..data/a.yaml", filepath.Join(dir, "a.yaml")))
	require.Equal(t, "a:1", next().Pod.Spec.Containers[0].Image)
	version("..v2", "a:2")
	require.Equal(t, manifest.Gone, next().Kind)
	require.Equal(t, "a:2", next().Pod.Spec.Containers[0].Image)
}

func TestRealOddFilesDoNotBlock(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo.yaml"), 0o600))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "link.yaml")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir.yaml"), 0o700))
	source := file.New(file.Config{Path: dir, NodeName: "n1"})
	ctx, stop := context.WithCancelCause(t.Context())
	_ = source.Run(ctx, func(u manifest.Update) { stop(errors.New(u.Kind.String())) })
	files := source.Files()
	require.Len(t, files, 3)
	require.Contains(t, files[0].Ignored, "it is a directory")
	require.ErrorContains(t, files[1].Err, "no regular file")
	require.ErrorContains(t, files[2].Err, "link to nowhere, which is not there")
}

func TestRealDirectoryIsReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	require.NoError(t, os.Mkdir(dir, 0o700))
	next := onDisk(t, dir)
	write(t, filepath.Join(dir, "a.yaml"), pod("a", "a:1"))
	require.Equal(t, manifest.Set, next().Kind)
	require.NoError(t, os.Rename(dir, dir+".old"))
	require.Equal(t, manifest.Gone, next().Kind)
	require.NoError(t, os.Mkdir(dir, 0o700))
	write(t, filepath.Join(dir, "b.yaml"), pod("b", "b:1"))
	require.Equal(t, "b:1", next().Pod.Spec.Containers[0].Image)
}
