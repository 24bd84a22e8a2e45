package cri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// PullImage pulls an image and returns its reference in the runtime (the image's ID). auth may be nil. It has no
// deadline but the caller's: only the caller knows how long a pull may take.
func (c *Client) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, pod *runtimeapi.PodSandboxConfig) (ref string, err error) {
	d := call{method: "PullImage", object: image.GetImage()}
	resp, err := invoke(ctx, c, d, c.images.PullImage, &runtimeapi.PullImageRequest{Image: image, Auth: auth, SandboxConfig: pod})
	return resp.GetImageRef(), err
}

// ImageStatus reads one image; nil without an error when it is not present.
func (c *Client) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec) (*runtimeapi.Image, error) {
	d := call{method: "ImageStatus", object: image.GetImage(), timeout: c.timeouts.Call}
	resp, err := invoke(ctx, c, d, c.images.ImageStatus, &runtimeapi.ImageStatusRequest{Image: image})
	return resp.GetImage(), err
}

// RemoveImage removes an image with all its names. Idempotent; an unknown image is success.
func (c *Client) RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error {
	d := call{method: "RemoveImage", object: image.GetImage(), timeout: c.timeouts.Call, gone: true}
	_, err := invoke(ctx, c, d, c.images.RemoveImage, &runtimeapi.RemoveImageRequest{Image: image})
	return err
}

// ImageFsInfo reads the use of the file systems that hold images and containers.
func (c *Client) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	d := call{method: "ImageFsInfo", timeout: c.timeouts.Call}
	return invoke(ctx, c, d, c.images.ImageFsInfo, &runtimeapi.ImageFsInfoRequest{})
}
