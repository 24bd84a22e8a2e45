package container

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// Limits of a container's last words (kubelet v1.37.2). How much of them all
// containers of a pod may show together is the status's matter.
const (
	maxMessage  = 4096 // bytes from the end of the termination log
	maxLogLines = 80   // lines from the end of the log
	maxLogBytes = 2048 // of those lines
	logWindow   = 256 << 10
)

// Finish adds the container's own last words to the message that st, the
// status that ct was made from, has about its exit. It reads at most two files
// and does nothing before the exit.
func (c *Containers) Finish(ct *pod.Container, st *runtimeapi.ContainerStatus) {
	if ct.State != pod.Exited {
		return
	}
	words := TerminationMessage(st)
	switch {
	case words == "":
	case ct.Exit.Message == "":
		ct.Exit.Message = words
	default:
		ct.Exit.Message += ": " + words
	}
}

// TerminationMessage returns what an exited container wrote into its
// termination log or, if it failed without a word and asks for that, the end of
// its log. Both are found by what the status says, so it needs no spec. What
// cannot be read is told in place of the message.
func TerminationMessage(st *runtimeapi.ContainerStatus) string {
	words := ""
	if path := st.GetAnnotations()[pod.AnnotationMessagePath]; path != "" {
		for _, m := range st.GetMounts() {
			if m.GetContainerPath() == path {
				words = fromFile(m.GetHostPath())
			}
		}
	}
	fallback := st.GetAnnotations()[pod.AnnotationMessagePolicy] == string(v1.TerminationMessageFallbackToLogsOnError)
	if words == "" && fallback && st.GetExitCode() != 0 && st.GetReason() != "ContainerCannotRun" {
		words = fromLog(st.GetLogPath())
	}
	return words
}

func fromFile(path string) string {
	text, err := tail(path, maxMessage)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ""
	case err != nil:
		return fmt.Sprintf("Error on reading termination log %s: %v", path, err)
	}
	return string(text)
}

func fromLog(path string) string {
	text, err := tail(path, logWindow)
	if err != nil {
		return fmt.Sprintf("Error reading termination message from logs: %v", err)
	}
	return lastLines(text)
}

// lastLines returns the content of the last lines of a log in the runtime's
// format: TIME STREAM TAGS CONTENT, where the first tag is P for a part of a line.
func lastLines(text []byte) string {
	const fields = 4
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	lines = lines[max(len(lines)-maxLogLines, 0):]
	var out strings.Builder
	for _, line := range lines {
		parts := bytes.SplitN(line, []byte(" "), fields)
		if len(parts) < fields {
			continue // cut off, or not the runtime's
		}
		out.Write(parts[fields-1])
		if tag, _, _ := bytes.Cut(parts[fields-2], []byte(":")); string(tag) != "P" {
			out.WriteByte('\n')
		}
	}
	s := out.String()
	return s[max(len(s)-maxLogBytes, 0):]
}

// tail returns at most the last n bytes of a regular file. A container can put
// anything in the place of a file that it is given: no link is followed and
// nothing is waited for.
func tail(path string, n int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if _, err := f.Seek(max(info.Size()-n, 0), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, n))
}
