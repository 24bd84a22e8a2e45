package crisim

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Version implements the CRI.
func (r *runtimeServer) Version(ctx context.Context, _ *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.VersionResponse]{
		target: Target{Method: "Version"},
		effect: func(context.Context) (*runtimeapi.VersionResponse, error) {
			return &runtimeapi.VersionResponse{
				Version: "0.1.0", RuntimeName: r.cfg.Name, RuntimeVersion: r.cfg.Version, RuntimeApiVersion: "v1",
			}, nil
		},
	})
}

// Status implements the CRI.
func (r *runtimeServer) Status(ctx context.Context, _ *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.StatusResponse]{
		target: Target{Method: "Status"},
		effect: func(context.Context) (*runtimeapi.StatusResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			network := &runtimeapi.RuntimeCondition{Type: runtimeapi.NetworkReady, Status: r.store.network}
			if !network.Status {
				network.Reason = "NetworkPluginNotReady"
				network.Message = "Network plugin returns error: cni plugin not initialized"
			}
			resp := &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
				{Type: runtimeapi.RuntimeReady, Status: true}, network,
			}}, Features: &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: !r.cfg.NoFeatures}}
			if r.cfg.NoFeatures {
				return resp, nil
			}
			for _, name := range append([]string{""}, r.cfg.Handlers...) {
				resp.RuntimeHandlers = append(resp.RuntimeHandlers, &runtimeapi.RuntimeHandler{
					Name: name, Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true, UserNamespaces: true},
				})
			}
			return resp, nil
		},
	})
}

// RuntimeConfig implements the CRI.
func (r *runtimeServer) RuntimeConfig(ctx context.Context, _ *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.RuntimeConfigResponse]{
		target: Target{Method: "RuntimeConfig"},
		effect: func(context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
			if r.cfg.NoRuntimeConfig {
				return nil, unimplemented("RuntimeConfig")
			}
			return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: r.cfg.CgroupDriver}}, nil
		},
	})
}

// UpdateRuntimeConfig implements the CRI; the address range is accepted and not used.
func (r *runtimeServer) UpdateRuntimeConfig(ctx context.Context, _ *runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.UpdateRuntimeConfigResponse]{
		target: Target{Method: "UpdateRuntimeConfig"},
		effect: func(context.Context) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
			return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
		},
	})
}
