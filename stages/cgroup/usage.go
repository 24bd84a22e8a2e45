package cgroup

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// MemoryUse returns the memory that all pods together use, without files that
// the kernel could drop at once, and what they may use; limit 0: there is none.
// Without cgroups of pods, and before they are made, both are 0.
func (m *Manager) MemoryUse() (used, limit int64, err error) {
	if m.isNop() || !m.tree.has("memory") || m.config.Node.Memory <= 0 {
		return 0, 0, nil
	}
	dir := filepath.Join(m.tree.Mounts["memory"], m.base.Path(m.config.Driver))
	if !isDir(dir) {
		return 0, 0, nil
	}
	all, inactive := "memory.usage_in_bytes", "total_inactive_file"
	if m.tree.V2 {
		all, inactive = "memory.current", "inactive_file"
	}
	text, err := os.ReadFile(filepath.Join(dir, all))
	if err == nil {
		used, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("measuring the memory of all pods: %w", err)
	}
	files, err := statOf(filepath.Join(dir, "memory.stat"), inactive)
	if err != nil {
		return 0, 0, fmt.Errorf("measuring the memory of all pods: %w", err)
	}
	return max(0, used-files), m.config.Node.Memory, nil
}

func statOf(path, name string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, value, ok := strings.Cut(s.Text(), " "); ok && key == name {
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no line %s", path, name)
}
