package crisim

import (
	"context"
	"fmt"
	"time"

	"github.com/distribution/reference"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageFs is the mount point that ImageFsInfo reports.
const imageFs = "/var/lib/flowlet-sim"

// PullImage implements the CRI.
func (r *imageServer) PullImage(ctx context.Context, req *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	ref := req.GetImage().GetImage()
	target := podTarget("PullImage", req.GetSandboxConfig().GetMetadata())
	target.Object = ref
	named, parseErr := reference.ParseDockerRef(ref)
	var script Image
	if parseErr == nil {
		script = r.imageScript(named)
	}
	return serve(ctx, r.Runtime, op[*runtimeapi.PullImageResponse]{
		target: target,
		extra:  script.Pull,
		prepare: func() error {
			if parseErr != nil {
				return fmt.Errorf("failed to parse image reference %q: %w", ref, parseErr)
			}
			return nil
		},
		effect: func(context.Context) (*runtimeapi.PullImageResponse, error) {
			if err := pullError(script, ref, req.GetAuth()); err != nil {
				return nil, err
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			return &runtimeapi.PullImageResponse{ImageRef: r.store.images.add(named).id}, nil
		},
	})
}

func (r *Runtime) imageScript(named reference.Named) Image {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.store.images.scripts[named.String()]
}

func pullError(script Image, ref string, auth *runtimeapi.AuthConfig) error {
	if script.Err != nil {
		return script.Err
	}
	if script.Auth != "" && script.Auth != auth.GetUsername()+":"+auth.GetPassword() {
		return fmt.Errorf("failed to pull and unpack image %q: failed to resolve reference %q: pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials", ref, ref)
	}
	return nil
}

// ImageStatus implements the CRI; an image that is not present is no error.
func (r *imageServer) ImageStatus(ctx context.Context, req *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	ref := req.GetImage().GetImage()
	return serve(ctx, r.Runtime, op[*runtimeapi.ImageStatusResponse]{
		target: Target{Method: "ImageStatus", Object: ref},
		effect: func(context.Context) (*runtimeapi.ImageStatusResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			resp := &runtimeapi.ImageStatusResponse{}
			if img := r.store.images.find(ref); img != nil {
				resp.Image = img.message()
			}
			return resp, nil
		},
	})
}

// ListImages implements the CRI.
func (r *imageServer) ListImages(ctx context.Context, _ *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.ListImagesResponse]{
		target: Target{Method: "ListImages"},
		effect: func(context.Context) (*runtimeapi.ListImagesResponse, error) {
			return &runtimeapi.ListImagesResponse{Images: r.listImages()}, nil
		},
	})
}

// StreamImages implements the CRI.
func (r *imageServer) StreamImages(_ *runtimeapi.StreamImagesRequest, stream runtimeapi.ImageService_StreamImagesServer) error {
	return streamList(stream.Context(), r.Runtime, "StreamImages", r.listImages,
		func(b []*runtimeapi.Image) error { return stream.Send(&runtimeapi.StreamImagesResponse{Images: b}) })
}

func (r *Runtime) listImages() []*runtimeapi.Image {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*runtimeapi.Image, 0, len(r.store.images.order))
	for _, img := range r.store.images.order {
		out = append(out, img.message())
	}
	return out
}

// RemoveImage implements the CRI: by any of its names, the image goes with all of them.
func (r *imageServer) RemoveImage(ctx context.Context, req *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	ref := req.GetImage().GetImage()
	return serve(ctx, r.Runtime, op[*runtimeapi.RemoveImageResponse]{
		target: Target{Method: "RemoveImage", Object: ref},
		effect: func(context.Context) (*runtimeapi.RemoveImageResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if img := r.store.images.find(ref); img != nil {
				r.store.images.remove(img)
			}
			return &runtimeapi.RemoveImageResponse{}, nil
		},
	})
}

// ImageFsInfo implements the CRI.
func (r *imageServer) ImageFsInfo(ctx context.Context, _ *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.ImageFsInfoResponse]{
		target: Target{Method: "ImageFsInfo"},
		effect: func(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			var used uint64
			for _, img := range r.store.images.order {
				used += img.size
			}
			usage := []*runtimeapi.FilesystemUsage{{
				Timestamp: time.Now().UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: imageFs},
				UsedBytes: &runtimeapi.UInt64Value{Value: used}, InodesUsed: &runtimeapi.UInt64Value{Value: uint64(len(r.store.images.order))},
			}}
			return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: usage, ContainerFilesystems: usage}, nil
		},
	})
}
