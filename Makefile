# Everything below works on a Debian-like machine with nothing but Go, git, make and gcc. What else a target needs it
# builds from the modules of test/tools, or installs as root with apt-get (and says so).

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build
MAKEFLAGS += --no-print-directory

export GOWORK := off
export GOFLAGS := -buildvcs=false

DEVNODE := bin/devnode
# Modules whose go.mod and go.sum are checked for drift. Jaeger is left out: asking costs a download of 900 modules.
MODULES := $(filter-out test/tools/jaeger,$(patsubst %/go.mod,%,$(shell git ls-files 'go.mod' '*/go.mod' | sed 's,^go.mod,./go.mod,')))
GOFILES = $(wildcard $(shell git ls-files "*.go"))

.PHONY: browser pictures root oracle help build check lint tidy fmt test unit e2e verified run tools clean FORCE

help: ## list the targets
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 10

build: $(if $(wildcard cmd/flowlet/*.go),bin/flowlet) ## build bin/flowlet

bin/flowlet: FORCE
	CGO_ENABLED=0 go build -trimpath -o $@ ./cmd/flowlet

$(DEVNODE): FORCE
	@CGO_ENABLED=0 go build -trimpath -o $@ ./test/devnode/cmd/devnode

check: lint tidy ## formatting, vet, staticcheck, import directions, module drift

lint:
	@echo "gofumpt"; files=$$(go tool -modfile=test/tools/dev/go.mod gofumpt -l $(GOFILES)); \
	  if [ -n "$$files" ]; then echo "not formatted (make fmt):"; echo "$$files"; exit 1; fi
	@echo "go vet"; go vet -tags e2e ./...
	@echo "staticcheck"; go tool -modfile=test/tools/dev/go.mod staticcheck -tags e2e ./...
	@echo "archtest"; go test -count=1 ./internal/archtest

tidy:
	@for m in $(MODULES); do echo "go mod tidy -diff $$m"; (cd $$m && go mod tidy -diff) || exit 1; done

fmt: ## format all Go files
	@go tool -modfile=test/tools/dev/go.mod gofumpt -w $(GOFILES)

test: $(DEVNODE) ## everything: checks, unit and scenario tests with -race, critest and end-to-end tests (SKIP_E2E=1 leaves the last two out)
	$(if $(SKIP_E2E),,$(DEVNODE) deps)
	$(MAKE) check
	$(MAKE) unit oracle
	$(if $(SKIP_E2E),@echo "SKIP_E2E is set: critest on containerd and the end-to-end tests did not run",$(MAKE) e2e)

unit: ## unit and scenario tests, with the race detector
	go test -race -timeout 15m ./...

oracle: ## manifests compared with Kubernetes' own code, in a module of its own
	cd test/oracle && go test -timeout 10m ./...

e2e: root build tools ## critest and end-to-end tests on a private containerd (root)
	go test -race -tags e2e -count=1 -p 1 -timeout 40m ./stages/cgroup ./stages/volume $$(go list -tags e2e ./test/... | grep -v /scenarios)

verified: root build tools ## run the end-to-end tests and write what they saw into docs/verified.md (root)
	VERIFIED=write go test -tags e2e -count=1 -timeout 40m ./test/e2e

root:
	@[ "$$(id -u)" = 0 ] || { echo "critest on containerd and the end-to-end tests did not run: they need root (namespaces, mounts, cgroups). SKIP_E2E=1 make test leaves them out."; exit 1; }

tools: $(DEVNODE) ## build containerd, runc, the CNI plugins and crictl into the cache
	$(DEVNODE) deps
	$(DEVNODE) tools

run: build $(DEVNODE) ## a node with the example pods, until Ctrl-C (RUN_FOR=60s, RUNTIME=sim, JAEGER=1)
	@exec $(DEVNODE) run

browser: bin/flowlet ## tests of the page in a browser (needs chromium; not part of test yet)
	FLOWLET=$(CURDIR)/bin/flowlet go -C test/browser test -race -count=1 ./...

pictures: bin/flowlet ## make the pictures of docs/pictures (needs chromium)
	go -C test/browser run ./pictures $(CURDIR)/bin/flowlet $(CURDIR)/docs/pictures

clean: ## remove what was built here; stop a node that make run left behind
	@if [ -x $(DEVNODE) ]; then $(DEVNODE) sweep; fi
	rm -rf bin
