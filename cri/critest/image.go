package critest

import (
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

var imageContract = []contract{
	{"image/status of a present one", func(e *env) {
		img, err := e.Client.ImageStatus(e.ctx, spec(e.Image))
		require.NoError(e, err)
		require.NotNil(e, img)
		require.NotEmpty(e, img.GetRepoTags())
		require.Positive(e, img.GetSize())
		byID, err := e.Client.ImageStatus(e.ctx, spec(img.GetId()))
		require.NoError(e, err)
		require.Equal(e, img.GetId(), byID.GetId())
	}},
	{"image/status of an absent one is nil", func(e *env) {
		img, err := e.Client.ImageStatus(e.ctx, spec(e.Missing))
		require.NoError(e, err)
		require.Nil(e, img)
	}},
	{"image/pull, list, remove", func(e *env) {
		require.NoError(e, e.Client.RemoveImage(e.ctx, spec(e.Pullable)))
		ref, err := e.Client.PullImage(e.ctx, spec(e.Pullable), nil, e.newPod(waits).config)
		require.NoError(e, err)
		img, err := e.Client.ImageStatus(e.ctx, spec(e.Pullable))
		require.NoError(e, err)
		require.Equal(e, ref, img.GetId())
		again, err := e.Client.PullImage(e.ctx, spec(e.Pullable), nil, nil)
		require.NoError(e, err)
		require.Equal(e, ref, again)
		require.Contains(e, e.imageIDs(), ref)
		require.NoError(e, e.Client.RemoveImage(e.ctx, spec(e.Pullable)))
		require.NoError(e, e.Client.RemoveImage(e.ctx, spec(e.Pullable)), "twice")
		require.NotContains(e, e.imageIDs(), ref)
	}},
	{"image/pull of a missing one fails", func(e *env) {
		_, err := e.Client.PullImage(e.ctx, spec(e.Missing), nil, nil)
		require.Error(e, err)
	}},
	{"image/of a container is in its status", func(e *env) {
		_, id := e.start(waits)
		s := e.status(id)
		require.NotEmpty(e, s.GetImageRef())
		require.NotEmpty(e, s.GetImage().GetImage())
	}},
	{"image/file systems", func(e *env) {
		info, err := e.Client.ImageFsInfo(e.ctx)
		require.NoError(e, err)
		require.NotEmpty(e, info.GetImageFilesystems())
		require.NotEmpty(e, info.GetImageFilesystems()[0].GetFsId().GetMountpoint())
	}},
}

func spec(ref string) *runtimeapi.ImageSpec { return &runtimeapi.ImageSpec{Image: ref} }

func (e *env) imageIDs() []string {
	e.Helper()
	list, err := e.Client.ListImages(e.ctx)
	require.NoError(e, err)
	var ids []string
	for _, img := range list {
		ids = append(ids, img.GetId())
	}
	return ids
}
