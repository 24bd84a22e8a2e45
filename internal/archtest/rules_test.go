package archtest_test

// The tables of this file are the rules. A path is relative to the module; "x/*" is every package below x, at any depth,
// that no longer pattern names.

// layers lists every folder that may hold packages, from the top down. Imports point to a lower layer; packages of one
// layer do not know each other, but for what siblings allows. A package that fits no line is a design question.
var layers = []layer{
	{"harness", []string{"test/*", "internal/archtest"}},
	{"command", []string{"cmd/flowlet"}},
	{"composition root", []string{"cmd/flowlet/app"}},
	{"outer", []string{
		"stages", "sources", "sources/*", "tracing", "internal/metrics", "internal/server", "internal/server/*",
		"internal/bench",
	}},
	{"domain and clients", []string{
		"stages/graph", "stages/*", "internal/podstore", "internal/config", "internal/manifest", "internal/explain", "internal/explain/*",
		"internal/journal", "cri", "cri/*",
	}},
	{"engines", []string{"dag", "dag/*", "pipeline", "pipeline/*"}},
	{"words of the runtime, calls to containers", []string{"internal/crifact", "internal/nodehttp", "internal/usage"}},
	{"words", []string{"internal/pod", "internal/plain"}},
}

// siblings are the edges allowed inside one layer, besides those from a package to one below its own folder.
var siblings = []edge{
	{"stages/graph", "stages/*", "the graph builder puts the stages of all concerns in order"},
	{"cri/*", "cri", "the simulated runtime, the contract suite and the stream proxy use the client's error classes"},
	{"sources/*", "sources", "the folder's page for authors"},
	{"internal/server/ui", "internal/server", "the page shows what the local API answers"},
	{"internal/explain/picture", "internal/explain", "a picture shows the stages of a report"},
	{"dag/dagtest", "dag", "a test double knows its subject"},
	{"pipeline/pipelinetest", "pipeline", "a test double knows its subject"},
	{"test/*", "test/*", "the end-to-end tests stand on the private node"},
}

// bans are imports that the layers alone would let through. An import is a path of this module or the beginning of
// another module's path.
var bans = []ban{
	{
		from: []string{"dag", "dag/*", "pipeline", "pipeline/*"}, imports: []string{"k8s.io/", "sigs.k8s.io/", "go.opentelemetry.io/", "internal/*"},
		why: "the engines know no pods, no runtime and no tracing",
	},
	{
		from: []string{"stages/*"}, except: []string{"stages/graph"}, imports: []string{"pipeline", "pipeline/*"},
		why: "a concern is called by the engine and never calls the pipeline",
	},
	{
		from: []string{"*"}, except: []string{"cmd/flowlet/app", "test/*"}, imports: []string{"tracing", "internal/metrics"},
		why: "observers are attached in the composition root, not called inline",
	},
	{
		from: []string{"*"}, except: []string{"tracing", "test/*"}, imports: []string{"go.opentelemetry.io/"},
		why: "OpenTelemetry stays behind the observers of package tracing",
	},
	{
		from: []string{"*"}, except: []string{"test/*"}, imports: []string{"github.com/stretchr/testify/", "go.uber.org/goleak", "pgregory.net/rapid"}, exceptTests: true,
		why: "product code does not link test libraries",
	},
}

// calls are functions that product code does not use, with the way out.
var calls = []call{
	{"time", "Sleep", nil, "wait on a timer and the context, so that a shutdown is not held up"},
	{"os", "Exit", []string{"cmd/flowlet"}, "return an error; only main ends the process"},
	{"log", "Fatal", []string{"cmd/flowlet"}, "return an error; only main ends the process"},
	{"log", "Fatalf", []string{"cmd/flowlet"}, "return an error; only main ends the process"},
	{"os/signal", "Notify", []string{"cmd/flowlet"}, "only main installs signal handlers"},
	{"os/signal", "NotifyContext", []string{"cmd/flowlet"}, "only main installs signal handlers"},
}

type layer struct {
	name  string
	paths []string
}

type edge struct{ from, to, why string }

type ban struct {
	from, except, imports []string
	exceptTests           bool // the ban spares packages whose name ends in "test"
	why                   string
}

type call struct {
	pkg, fn string
	except  []string
	instead string
}
