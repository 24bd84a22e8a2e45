package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Text writes the report in at most 100 columns.
func (r *StartReport) Text() string {
	var b strings.Builder
	b.WriteString(r.Head.text("start"))
	for i := range r.Batches {
		b.WriteString("\n" + r.Batches[i].text())
	}
	return b.String()
}

func (h *Head) text(workload string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "flowlet bench %s on %s %s at %s\n", workload, h.Runtime.Name, h.Runtime.Version, h.Runtime.Endpoint)
	fmt.Fprintf(&b, "pods of %s; %s, load average %.2f, %s\n", h.Shape, count(h.Host.CPUs, "CPU"), h.Host.Load, h.Host.Go)
	if h.Runtime.InProcess {
		b.WriteString("CPU and memory include those of the simulated runtime in this process\n")
	}
	for _, method := range slices.Sorted(maps.Keys(h.Runtime.LatencyMs)) {
		fmt.Fprintf(&b, "%s takes %s\n", method, milli(h.Runtime.LatencyMs[method]))
	}
	for _, w := range h.Warnings {
		b.WriteString(wrap("WARNING: " + w))
	}
	return b.String()
}

func (out *Batch) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s started at once, medians of %s\n", count(out.Pods, "pod"), count(len(out.Agent.Runs), "run"))
	b.WriteString(table(func(w *tabwriter.Writer) {
		fmt.Fprintln(w, "\tP50\tP99\tMAKESPAN\tPODS/S\tCPU/POD\tCALLS/POD\tHEAP/POD\t")
		row(w, "agent", &out.Agent.Median)
		if out.Floor != nil {
			row(w, fmt.Sprintf("floor, %d at a time", out.Floor.Slots), &out.Floor.Median)
			fmt.Fprintln(w, out.ratioRow())
			fmt.Fprintln(w, out.intervalRow())
		}
	}))
	m := out.Agent.Median
	b.WriteString(wrap(fmt.Sprintf("agent: %.1f syncs per pod, %.0f syncs/s; %.2f goroutines per settled pod; RSS %s; all removed in %s",
		m.Steps, m.StepsPerS, m.Goroutines, size(m.RSS), milli(m.RemoveMs))))
	b.WriteString(wrap("calls of the agent: " + calledText(m.ByMethod)))
	b.WriteString(out.parityText())
	b.WriteString(out.pathText())
	return b.String()
}

func row(w *tabwriter.Writer, name string, r *Run) {
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.0f\t%s\t%.2f\t%s\t\n", name, milli(r.P50Ms), milli(r.P99Ms), milli(r.MakespanMs),
		r.PodsPerS, milli(r.CPUMs), r.Calls, size(r.Heap))
}

// ratioColumns are the metrics in the order of the table; PODS/S has none.
func ratioColumns() []string {
	return []string{"p50Ms", "p99Ms", "makespanMs", "", "cpuMsPerPod", "callsPerPod", "heapBytesPerPod"}
}

func (out *Batch) ratioRow() string {
	return out.ratios("agent/floor", func(r Ratio) string { return fmt.Sprintf("%.2f", r.Value) })
}

func (out *Batch) intervalRow() string {
	return out.ratios("95 % of it", func(r Ratio) string { return fmt.Sprintf("%.2f-%.2f", r.Low, r.High) })
}

func (out *Batch) ratios(name string, show func(Ratio) string) string {
	cells := []string{name}
	for _, column := range ratioColumns() {
		cell := ""
		if r, ok := out.Ratios[column]; ok {
			cell = show(r)
		}
		cells = append(cells, cell)
	}
	return strings.Join(cells, "\t") + "\t"
}

func calledText(calls map[string]int) string {
	var parts []string
	for _, method := range slices.Sorted(maps.Keys(calls)) {
		parts = append(parts, fmt.Sprintf("%s %d", method, calls[method]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func (out *Batch) parityText() string {
	if out.Floor == nil {
		return ""
	}
	tried := make([]string, len(out.Sweep))
	for i, s := range out.Sweep {
		tried[i] = fmt.Sprintf("%d: %s", s.Slots, milli(s.MakespanMs))
	}
	sweep := wrap("makespan of the floor by pods at a time: " + strings.Join(tried, ", "))
	if len(out.Parity) == 0 {
		return "the floor made the same calls\n" + sweep
	}
	var parts []string
	for _, method := range slices.Sorted(maps.Keys(out.Parity)) {
		parts = append(parts, fmt.Sprintf("%s %d", method, out.Parity[method][1]))
	}
	return wrap("the floor made other numbers of: "+strings.Join(parts, ", ")) + sweep
}

// shownShare is the least share of a line of the critical path.
const shownShare = 0.01

func (out *Batch) pathText() string {
	if len(out.Path) == 0 {
		return ""
	}
	return "what a start waited for (critical path, mean of the pods that the journal still knew)\n" + table(func(w *tabwriter.Writer) {
		for _, p := range out.Path {
			if p.Share >= shownShare {
				fmt.Fprintf(w, "  %s\t%s\t%s\t%.0f %%\t\n", orNone(p.Stage), p.State, milli(p.MeanMs), p.Share*100)
			}
		}
	})
}

func orNone(stage string) string {
	if stage == "" {
		return "no stage"
	}
	return stage
}

// Text writes the report in at most 100 columns.
func (r *SyncReport) Text() string {
	var b strings.Builder
	b.WriteString(r.Head.text("sync"))
	fmt.Fprintf(&b, "\n%s settled\n", count(r.Pods, "pod"))
	b.WriteString(table(func(w *tabwriter.Writer) {
		fmt.Fprintln(w, "\tEVENTS/S\tCPU EACH\tALLOCS EACH\tBYTES EACH\tSYNCS\tSTAGES RUN\tCALLS\t")
		for _, k := range r.Kinds {
			fmt.Fprintf(w, "%s\t%.0f\t%s\t%.2f\t%.0f\t%d\t%d\t%d\t\n", k.Kind, k.PerS, milli(k.CPUMicro/1000), k.Allocs, k.Bytes,
				k.Steps, k.Runs, k.Calls)
		}
	}))
	for _, k := range r.Kinds {
		fmt.Fprintf(&b, "%s: %s\n", k.Kind, k.What)
	}
	return b.String()
}

func table(fill func(w *tabwriter.Writer)) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 1, 2, ' ', tabwriter.AlignRight)
	fill(w)
	_ = w.Flush() // a strings.Builder does not fail
	return b.String()
}

// milli writes milliseconds with three digits that count.
func milli(v float64) string {
	d := time.Duration(v * float64(time.Millisecond))
	switch {
	case d >= 100*time.Second:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3gms", v)
	case d >= time.Microsecond:
		return fmt.Sprintf("%.3gµs", v*1000)
	}
	return fmt.Sprintf("%dns", d)
}

// size writes bytes with a unit.
func size(v float64) string {
	const k = 1024
	switch {
	case v >= k*k || v <= -k*k:
		return fmt.Sprintf("%.1fMiB", v/k/k)
	case v >= k || v <= -k:
		return fmt.Sprintf("%.1fKiB", v/k)
	}
	return fmt.Sprintf("%.0fB", v)
}

// width is the widest line of a report.
const width = 100

// wrap breaks a text into lines, all but the first of which are indented.
func wrap(text string) string {
	var b strings.Builder
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			b.WriteString(line + "\n")
			line = "  " + word
		default:
			line += " " + word
		}
	}
	return b.String() + line + "\n"
}
