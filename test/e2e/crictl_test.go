//go:build e2e

package e2e_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"
)

// Labels that the runtime is given, by which all tools find a pod's sandboxes and containers.
const (
	uidLabel       = "io.kubernetes.pod.uid"
	podLabel       = "io.kubernetes.pod.name"
	namespaceLabel = "io.kubernetes.pod.namespace"
	containerLabel = "io.kubernetes.container.name"
)

// sandbox and container are what crictl lists, with the words of its JSON.
type (
	sandbox struct {
		ID       string
		Metadata struct {
			Name, UID, Namespace string
			Attempt              int32
		}
		State               string
		Labels, Annotations map[string]string
	}
	container struct {
		ID           string
		PodSandboxID string
		Metadata     struct {
			Name    string
			Attempt int32
		}
		State               string
		CreatedAt           string // nanoseconds
		Labels, Annotations map[string]string
	}
	// inspected is the status of a container.
	inspected struct {
		ID       string
		Metadata struct {
			Name    string
			Attempt int32
		}
		State               string
		StartedAt           time.Time
		FinishedAt          time.Time
		ExitCode            int32
		Reason, Message     string
		Image               struct{ Image string }
		ImageRef, LogPath   string
		Labels, Annotations map[string]string
	}
)

const (
	sandboxReady     = "SANDBOX_READY"
	containerRunning = "CONTAINER_RUNNING"
	containerExited  = "CONTAINER_EXITED"
)

// crictl is the output of crictl on the agent's runtime.
func (a *agent) crictl(args ...string) ([]byte, error) {
	cmd := a.node.Command(context.WithoutCancel(a.t.Context()), "crictl", args...)
	cmd.Stdout, cmd.Stderr = nil, nil
	out, err := cmd.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return out, fmt.Errorf("crictl %s: %w: %s", args[0], err, ended.Stderr)
	}
	return out, err
}

func (a *agent) crictlJSON(out any, args ...string) error {
	b, err := a.crictl(slices.Insert(args, 1, "-o", "json")...)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, out)
}

// sandboxes are all that the runtime has, the newest attempt of a pod first.
func (a *agent) sandboxes() []sandbox {
	a.t.Helper()
	var out struct{ Items []sandbox }
	require.NoError(a.t, a.crictlJSON(&out, "pods"))
	slices.SortFunc(out.Items, func(x, y sandbox) int { return cmp.Compare(y.Metadata.Attempt, x.Metadata.Attempt) })
	return out.Items
}

// containers are all that the runtime has, the newest first.
func (a *agent) containers() []container {
	a.t.Helper()
	var out struct{ Containers []container }
	require.NoError(a.t, a.crictlJSON(&out, "ps", "-a"))
	created := func(c container) int64 {
		n, err := strconv.ParseInt(c.CreatedAt, 10, 64)
		require.NoError(a.t, err)
		return n
	}
	slices.SortFunc(out.Containers, func(x, y container) int { return cmp.Compare(created(y), created(x)) })
	return out.Containers
}

// containersOf are those of a pod's container, the newest first.
func containersOf(all []container, uid, name string) (out []container) {
	for _, c := range all {
		if c.Labels[uidLabel] == uid && c.Labels[containerLabel] == name {
			out = append(out, c)
		}
	}
	return out
}

// inspect is the status of a container. It may have been removed meanwhile.
func (a *agent) inspect(id string) (inspected, error) {
	var out struct{ Status inspected }
	err := a.crictlJSON(&out, "inspect", id)
	return out.Status, err
}

// sandboxIP is a sandbox's address.
func (a *agent) sandboxIP(id string) (string, error) {
	var out struct {
		Status struct{ Network struct{ IP string } }
	}
	err := a.crictlJSON(&out, "inspectp", id)
	return out.Status.Network.IP, err
}
