# What to type: make run, make check, make test. CONTRIBUTING.md says when.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO          ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
BUILD       := .build
FUZZTIME    ?= 60s

# Folders whose tests drive npm packages.
NPM := test/interop test/conformance test/e2e

# Examples on routers that nobody else should have to download: a module of its own.
ROUTERS := examples/routers

# What make test runs under the race detector: where goroutines meet on shared
# state, without the one test that only counts to ten thousand. make soak runs
# everything under it.
RACE := ./authclient/... ./internal/app ./internal/gateway/... ./internal/keys ./internal/login ./internal/obs ./internal/ratelimit ./internal/sqlstore/... \
	./metadata ./registration ./resourceserver/...
RACES := TestCO02|TestRT02|TestRT04|TestRT11|TestSL06|TestSL10|TestFlow|TestTK15

# What lasts longest begins first, beside all that is short.
LONGEST := ./test/e2e ./authserver ./test/interop

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

.PHONY: build
build: ## Build .build/ostiary and .build/mcpserver
	@mkdir -p $(BUILD)
	$(GO) build -o $(BUILD)/ ./cmd/ostiary ./examples/mcpserver

.PHONY: run
run: build ## Start ostiary and the example MCP server beside it
	@test/run.sh $(BUILD)

.PHONY: lint
lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [[ -z $$unformatted ]] || { echo "not gofmt-ed: $$unformatted"; exit 1; }
	$(GO) vet ./...
	cd $(ROUTERS) && $(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

.PHONY: check
check: lint ## The quick look: lint, and the tests on SQLite without browser and npm
	OSTIARY_TEST_POSTGRES=off $(GO) test $$($(GO) list ./... | grep -vE '/test/(e2e|interop|conformance|doctor|proxy|load)$$')
	cd $(ROUTERS) && $(GO) test ./...

.PHONY: test
test: ## The gate, what CI runs: both databases, race detector, browser, SDKs
	@test/setup.sh $(NPM)
	$(MAKE) --no-print-directory lint
	@mkdir -p $(BUILD)
	$(GO) build -o $(BUILD)/pgcluster ./test/testkit/pgcluster
	OSTIARY_ARTEFACTS="$${OSTIARY_ARTEFACTS:-$(CURDIR)/$(BUILD)/artefacts}" \
		test/withpostgres.sh $(BUILD)/pgcluster $(MAKE) --no-print-directory test-race test-all

.PHONY: test-race
test-race:
	$(GO) test -race -timeout 10m -skip TenThousand $(RACE)
	$(GO) test -race -timeout 10m -run '$(RACES)' ./authserver

.PHONY: test-all
test-all:
	$(GO) test -count=1 -timeout 12m $(LONGEST) ./...
	cd $(ROUTERS) && $(GO) test -count=1 ./...

.PHONY: soak
soak: ## The long runs: race detector, kill loops, fuzzing; summary in .build/soak.txt
	@test/setup.sh $(NPM)
	@mkdir -p $(BUILD)
	$(GO) build -o $(BUILD)/pgcluster ./test/testkit/pgcluster
	test/soak.sh $(FUZZTIME) 2>&1 | tee $(BUILD)/soak.txt

.PHONY: fuzz
fuzz: ## Fuzz every parser of foreign bytes for FUZZTIME each
	@test/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: ## Go benchmarks with allocations; the middleware beside others
	$(GO) test -run '^$$' -bench . -benchmem ./...
	test/bench.sh
	test/bench-gateway.sh

.PHONY: docs
docs: ## Write docs/configuration.md, docs/cli.md and docs/doctor.md again from the code
	$(GO) test ./internal/config ./cmd/ostiary -run TestReferenceIsCurrent -update
	$(GO) test ./test/doctor -run TestDocument -update

.PHONY: clean
clean: ## Remove what the targets made
	rm -rf $(BUILD)
