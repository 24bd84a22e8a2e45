package images

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Registry serves images from memory on a free loopback port.
type Registry struct {
	Addr   string // HOST:PORT
	server *http.Server
	ended  chan struct{}
}

// Serve starts a registry. Close stops it.
func Serve() (*Registry, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Registry{
		Addr:   l.Addr().String(),
		server: &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), ReadHeaderTimeout: time.Minute},
		ended:  make(chan struct{}),
	}
	go func() {
		defer close(r.ended)
		_ = r.server.Serve(l)
	}()
	return r, nil
}

// Push puts an image under a name of Host.
func (r *Registry) Push(ctx context.Context, image string, img v1.Image) error {
	rest, ok := strings.CutPrefix(image, Host+"/")
	if !ok {
		return errors.New("the registry has images of " + Host + " only, not " + image)
	}
	ref, err := name.ParseReference(r.Addr+"/"+rest, name.Insecure)
	if err != nil {
		return err
	}
	return remote.Write(ref, img, remote.WithContext(ctx))
}

// Close stops the server and waits for it.
func (r *Registry) Close() {
	_ = r.server.Close()
	<-r.ended
}
