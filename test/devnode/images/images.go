// Package images makes the images of example and test pods, with no network and no container tools, and serves them from a
// registry on a loopback address, so that the runtime's pulls are real.
package images

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Repository and tag of the images, on the host that manifests name. The runtime is told to find that host at the
// registry's true address, so that manifests can be read, and used elsewhere, as they are.
const (
	Host  = "localhost:5000"
	Demo  = Host + "/demo:1"  // the program demo as entrypoint, and its commands as /bin/NAME
	Pause = Host + "/pause:1" // for sandboxes
	// The program again, with what an image can say: a named user (65534, in the group 5000, too), variables, a default
	// command, a directory; and a user by numbers, 1000 and 2000.
	Named    = Host + "/named:1"
	Numbered = Host + "/numbered:1"
)

// links are the commands of demo that have a name in /bin.
var links = []string{"serve", "sleep", "log", "write", "follow", "cat", "ls", "env", "id", "job", "crash", "exit", "get", "report", "signals", "fill", "oom", "size", "pause"}

// Build compiles the program demo of the checkout and makes the images, by their names. All have the same single layer.
func Build(ctx context.Context, repo string) (map[string]v1.Image, error) {
	program, err := compile(ctx, repo)
	if err != nil {
		return nil, err
	}
	content, err := layer(program)
	if err != nil {
		return nil, err
	}
	out := map[string]v1.Image{}
	for name, config := range map[string]v1.Config{
		Demo:     {Entrypoint: []string{"/bin/demo"}, WorkingDir: "/"},
		Pause:    {Entrypoint: []string{"/bin/pause"}, WorkingDir: "/"},
		Named:    {Entrypoint: []string{"/bin/demo"}, Cmd: []string{"report", "/image"}, User: "nobody", WorkingDir: "/data", Env: []string{"FROM=image", "HOME=/data"}},
		Numbered: {Entrypoint: []string{"/bin/demo"}, User: "1000:2000"},
	} {
		config.Env = append(config.Env, "PATH=/bin")
		if out[name], err = image(content, config); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func compile(ctx context.Context, repo string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "demo")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out := filepath.Join(dir, "demo")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, "./test/devnode/images/demo")
	cmd.Dir = repo
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the program of the images: %w\n%s", err, output)
	}
	return os.ReadFile(out)
}

// layer is the content of all images: the program, its links, and what programs expect to find.
func layer(program []byte) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	add := func(h tar.Header, content string) error {
		h.Size = int64(len(content))
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := io.WriteString(w, content)
		return err
	}
	for _, d := range []struct {
		name string
		mode int64
	}{{"bin/", 0o755}, {"etc/", 0o755}, {"data/", 0o777}, {"tmp/", 0o1777}} {
		if err := add(tar.Header{Typeflag: tar.TypeDir, Name: d.name, Mode: d.mode}, ""); err != nil {
			return nil, err
		}
	}
	for _, f := range []struct{ name, content string }{
		{"etc/passwd", "root:x:0:0:root:/:/bin/demo\nnobody:x:65534:65534:nobody:/:/bin/demo\n"},
		{"etc/group", "root:x:0:\nnogroup:x:65534:\nextra:x:5000:nobody\n"},
	} {
		if err := add(tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o644}, f.content); err != nil {
			return nil, err
		}
	}
	if err := add(tar.Header{Typeflag: tar.TypeReg, Name: "bin/demo", Mode: 0o755}, string(program)); err != nil {
		return nil, err
	}
	for _, link := range links {
		if err := add(tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + link, Linkname: "demo", Mode: 0o777}, ""); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), w.Close()
}

func image(content []byte, config v1.Config) (v1.Image, error) {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cfg = cfg.DeepCopy()
	cfg.OS, cfg.Architecture, cfg.Config = "linux", runtime.GOARCH, config
	return mutate.ConfigFile(img, cfg)
}
