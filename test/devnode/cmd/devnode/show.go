package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// settleLimit is how long the example pods may take to get where they are going on a slow machine. Longer is a fault that
// the user should see, not the end of the run.
const settleLimit = 2 * time.Minute

// steadyFor is how long nothing may change before the pods count as settled: a container that is about to crash was
// ready before.
const steadyFor = 3 * time.Second

// show prints how the pods come up, what the web server answers, and what each stage took.
func (p *play) show(ctx context.Context) error {
	p.printCommands()
	pods, err := p.watch(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	for _, pod := range pods {
		fmt.Printf("\nstages of %s:\n", name(pod))
		out, err := p.ask(ctx, "trace", name(pod))
		if err != nil {
			fmt.Println(" ", err)
			continue
		}
		for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
			fmt.Println(" ", s.Text())
		}
	}
	return nil
}

// watch prints a line for each change until all pods are where they are going.
func (p *play) watch(ctx context.Context) ([]corev1.Pod, error) {
	manifests, _ := filepath.Glob(filepath.Join(p.manifests, "*"))
	last := map[string]string{}
	limit, changed := time.After(settleLimit), time.Now()
	var reason error
	for {
		pods, err := p.pods(ctx)
		reason = err
		slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(name(a), name(b)) })
		for _, pod := range pods {
			now := describe(pod)
			if now == last[name(pod)] {
				continue
			}
			last[name(pod)], changed = now, time.Now()
			fmt.Printf("%7.2fs  %-24s %s\n", time.Since(p.begin).Seconds(), name(pod), now)
			if pod.Labels["app"] == "web" && !unsettled(pod) && p.endpoint != "sim:" {
				p.curl(ctx, pod)
			}
		}
		if len(pods) >= len(manifests) && !slices.ContainsFunc(pods, unsettled) && time.Since(changed) > steadyFor {
			return pods, nil
		}
		select {
		case <-ctx.Done():
			return pods, nil
		case <-p.ended:
			return nil, fmt.Errorf("flowlet ended by itself: %w; see %s", p.endErr, p.log)
		case <-limit:
			fmt.Printf("the pods did not settle in %s (%v); see %s\n", settleLimit, reason, p.log)
			return pods, nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// curl asks the web pod for its page at the pod's own address.
func (p *play) curl(ctx context.Context, pod corev1.Pod) {
	url := "http://" + pod.Status.PodIP + ":8080/"
	fmt.Println("$ curl", url)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := (&http.Client{Timeout: 5 * time.Second}).Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.Copy(os.Stdout, resp.Body)
	_ = resp.Body.Close()
}

// printCommands tells what to try in a second terminal.
func (p *play) printCommands() {
	fmt.Println("\nIn a second terminal:")
	for _, c := range []string{"get pods", "why crash", "dag web", "trace web"} {
		fmt.Printf("  %s %s --root-dir %s\n", p.flowlet, c, p.root)
	}
	fmt.Printf("Manifests are in %s, logs in %s.\n\n", p.manifests, filepath.Dir(p.log))
}

func name(pod corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// describe is a pod's state in a few words.
func describe(pod corev1.Pod) string {
	all := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	ready, restarts, why := 0, int32(0), ""
	for _, c := range all {
		restarts += c.RestartCount
		if w := c.State.Waiting; w != nil && w.Reason != "" && why == "" {
			why = " " + w.Reason
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Ready {
			ready++
		}
	}
	s := fmt.Sprintf("%-10s %d/%d ready%s", pod.Status.Phase, ready, len(pod.Spec.Containers), why)
	if restarts == 1 {
		s += ", 1 restart"
	} else if restarts > 1 {
		s += fmt.Sprintf(", %d restarts", restarts)
	}
	return s
}

// unsettled says whether a pod is still on its way: not ready, not ended, and not in a crash loop.
func unsettled(pod corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed:
		return false
	case corev1.PodRunning:
	default:
		return true
	}
	if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		return true // it is to complete
	}
	for _, c := range pod.Status.ContainerStatuses {
		looping := c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff"
		if !c.Ready && !looping {
			return true
		}
	}
	return len(pod.Status.ContainerStatuses) == 0
}
