package ui

import (
	"fmt"
	"strings"

	"github.com/flowlet/flowlet/internal/server"
)

// meterOf shows how much of something is used.
func meterOf(a server.Amount) meter {
	m := meter{Name: a.Signal, Used: int(100 * (a.Capacity - a.Available) / max(1, a.Capacity)), Class: "done"}
	if strings.Contains(a.Signal, "inodes") || strings.HasPrefix(a.Signal, "pid") {
		m.Left = fmt.Sprintf("%d of %d left", a.Available, a.Capacity)
	} else {
		m.Left = fmt.Sprintf("%.1f of %.1f GiB left", float64(a.Available)/(1<<30), float64(a.Capacity)/(1<<30))
	}
	switch {
	case m.Used >= 95:
		m.Class = "failed"
	case m.Used >= 85:
		m.Class = "held"
	}
	return m
}
