# Everything that is done to tierd by hand is a target here. `make` alone lists them.
#
# build, test and demo need Go and nothing else. race needs a C compiler besides, since the race
# detector is linked by cgo; lint fetches its two tools, at the versions below, through the Go
# module proxy. interop needs a JDK, Maven, Node.js and kcat.

GO       ?= go
FUZZTIME ?= 10s

# Binaries are static, and compiled once for all targets but race.
export CGO_ENABLED := 0

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
ERRCHECK    := github.com/kisielk/errcheck@v1.30.0

# The packages that link the providers' SDKs. They take minutes to compile, and once is enough:
# race leaves them out.
SDK := ./cmd/... ./objstore/providers

.DEFAULT_GOAL := help
.PHONY: help build test race fuzz sim fresh exhaust planted crash bench lint opa plugins \
	rewrite check check-rest demo interop

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

build: ## compile everything; the commands go to bin/
	$(GO) build ./...
	$(GO) build -o bin/ ./cmd/...

test: ## run all tests
	$(GO) test -timeout 30m ./...

race: ## run the tests with the race detector (needs a C compiler)
	@set -e; all=$$($(GO) list ./...); sdk=$$($(GO) list $(SDK)); \
	CGO_ENABLED=1 $(GO) test -race -timeout 40m $$(echo "$$all" | grep -vxF "$$sdk")

# Go 1.26 fails a target now and then, and names no input, at the end of a FUZZTIME that is a time: its issue 75804.
# A number of runs, such as 2000x, has no such end.
fuzz: ## run each fuzz target for FUZZTIME (10s)
	@set -e; \
	for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
		targets=$$($(GO) test -list '^Fuzz' $$dir); \
		for target in $$(echo "$$targets" | grep '^Fuzz'); do \
			echo "$$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$dir; \
		done; \
	done

KILLS ?= 200

crash: ## kill the real command KILLS times (200) at random moments of its work
	$(GO) test ./cmd/tierd -run '^TestKill$$' -count 1 -v -timeout 30m -args -kills $(KILLS)

SEEDS ?= 1..1000

sim: ## try the histories of SEEDS (1..1000) for 3 minutes, and the project that tiersim init writes
	@$(GO) build -o bin/ ./cmd/tiersim
	bin/tiersim check --builtin --seeds $(SEEDS) --budget 2m --out bin
	bin/tiersim check --builtin --layout kafka --seeds $(SEEDS) --budget 1m --out bin
	rm -rf bin/retention
	bin/tiersim init bin/retention >/dev/null
	bin/tiersim check --config bin/retention --seeds 200 --budget 3m --out bin

fresh: ## try simulated histories that nobody has tried before, for a minute
	@$(GO) build -o bin/ ./cmd/tiersim
	bin/tiersim check --builtin --fresh --seeds 500 --budget 40s --out bin --allow-vacuous
	bin/tiersim check --builtin --layout kafka --fresh --seeds 500 --budget 20s --out bin \
		--allow-vacuous

exhaust: ## try every simulated history within bounds
	@$(GO) build -o bin/ ./cmd/tiersim
	bin/tiersim exhaust --builtin --out bin --budget 10m

FAULT ?=

planted: ## plant each mistake in the engine (FAULT: those named like it), and see that it is found
	$(GO) vet -tags planted ./sim ./runtime/planted
	$(GO) test -tags planted -run '^TestPlanted$$' -count 1 -v -timeout 30m ./sim -args -fault "$(FAULT)"

BENCH ?=

bench: ## measure what BENCHMARKS.md shows, in about 25 minutes (BENCH=-json: as JSON)
	@$(GO) build -o bin/ ./cmd/tierd
	@$(GO) run ./internal/bench -tierd bin/tierd $(BENCH)

lint: ## look for what the compiler lets pass: go.mod, gofmt, vet, staticcheck, errcheck
	$(GO) mod tidy -diff
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	cd interop && $(GO) mod tidy -diff && $(GO) vet -tags measure ./... && \
		$(GO) run $(STATICCHECK) -tags measure ./...
	$(GO) run $(ERRCHECK) -ignoretests $$($(GO) list ./... | grep -v 'test$$')

opa: ## run OPA's own check, fmt and test over our policies: they take the same files
	GOBIN=$(CURDIR)/bin $(GO) install github.com/open-policy-agent/opa@$$($(GO) list -m \
		-f '{{.Version}}' github.com/open-policy-agent/opa)
	bin/opa check --strict --schema policies/schema/input.json policies
	bin/opa fmt --list --fail policies
	@set -e; for dir in policies policies/examples/*/; do echo "opa test $$dir"; bin/opa test --ignore schema $$dir; done

plugins: ## rebuild the plugins of testdata/plugins, where their compilers are
	@$(MAKE) -s --no-print-directory -B -C testdata/plugins committed
	@git --no-pager diff --stat -- testdata/plugins

rewrite: ## write the golden files anew: read the diff before you commit it
	$(GO) test $$(grep -rlE --include='*_test.go' '"rewrite"|cockroachdb/datadriven"' . | \
		xargs -n 1 dirname | sort -u) -rewrite

# kcat is a program that not every machine has.
.PHONY: clients
clients: ## read both tiers with kcat, which has to be installed
	@command -v kcat >/dev/null || { echo "kcat is missing: apt-get install kcat"; exit 1; }
	$(GO) vet -tags clients ./runtime/daemon
	$(GO) test -tags clients -run Kcat -count 1 ./runtime/daemon

demo: ## run the main job on real Kafka segments and check what became of every file
	@$(GO) build -o bin/ ./cmd/tierd
	@sh demo/demo.sh bin/tierd

INTEROP ?=

interop: ## fetch brokers and stores, test the real command beside them (needs a JDK, Maven, npm)
	$(GO) build -o bin/ ./cmd/tierd
	interop/fetch.sh interop/.systems
	cd interop && $(GO) vet ./... && $(GO) test -count 1 -timeout 15m ./... $(INTEROP)

.PHONY: bench-interop
bench-interop: ## measure tierd beside rclone and a broker's own tiered storage (needs rclone besides)
	@command -v rclone >/dev/null || { echo "rclone is missing: apt-get install rclone"; exit 1; }
	$(GO) build -o bin/ ./cmd/tierd
	interop/fetch.sh interop/.systems tiered
	cd interop && $(GO) test -tags measure -run '^TestMeasure$$' -count 1 -timeout 60m . \
		-table $(CURDIR)/bin/bench-interop.md $(INTEROP)
	@cat bin/bench-interop.md

check: test check-rest ## what CI runs, but for clients and interop

check-rest: ## all that CI runs, but the tests
	$(MAKE) build
	$(MAKE) lint
	$(MAKE) opa
	$(MAKE) race
	$(MAKE) fuzz FUZZTIME=2000x
	$(MAKE) crash
	$(MAKE) planted
	$(MAKE) sim
	$(MAKE) fresh
	$(MAKE) exhaust
	$(MAKE) demo
	git diff --exit-code
