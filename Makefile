# make build   builds both programs, in bin/
# make test    runs all tests that this machine can run
# make check   checks everything else that must hold before a change is merged
# make ci      both
# make bench   measures a server beside familiar programs; "make bench ARGS='-packs 100 -only start'" is a part
# make docker  builds the image; without a Docker engine, its stages one by one
# make snapshot  makes the files of a release in dist/, and publishes nothing

VERSION := $(shell git describe --tags --always --dirty --match 'v*' 2>/dev/null || echo devel)
COMMIT  := $(shell git rev-parse HEAD 2>/dev/null)
DATE    := $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)

# Linters are pinned here and not in go.mod, since their dependencies are not ours.
STATICCHECK := staticcheck honnef.co/go/tools/cmd/staticcheck v0.8.2
GOLANGCI    := golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint v2.15.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck v1.6.0
GORELEASER  := github.com/goreleaser/goreleaser/v2 v2.14.1
ACTIONLINT  := actionlint github.com/rhysd/actionlint/cmd/actionlint v1.7.10

# The checks use the build settings of "make build", so that nothing is compiled twice.
AS_BUILT := CGO_ENABLED=0 GOFLAGS='$(strip $(GOFLAGS) -trimpath)'

FUZZTIME ?= 30s
FUZZPARTS ?= 1

.PHONY: snapshot snapshot-check release release-files install-script workflows image build test check ci bench bench-micro bench-sandbox bench-runs bench-containers bench-sources json-passes bench-overshoot lines soak-changes soak-sandbox soak-sources soak-approvals soak-http soak-replicas soak-watch soak-churn pictures unprivileged wine docker fmt vet tidy shell staticcheck lint vuln cross fuzz e2e agents agents-setup inspector cards conformance fresh clean

# Static, and without paths of the build machine.
build:
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/packs-mcp ./cmd/packs-mcp
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/packs-mcp-sigstore ./cmd/packs-mcp-sigstore

# "make test V=1" also names what is skipped, and why. Few packages run at a time, since
# many tests have time limits: three of those that mostly wait for processes and browsers,
# and two of the others. test/sandbox runs alone, since it counts what is left on the
# machine. The packages in PLAIN are tested without the race detector: those in PURE use one
# goroutine at a time (except for one test of tools), and the detector would take ten times
# as long; the others start the program, or a runner that internal/sandbox tests with the
# detector, built as it is shipped. The tests of cmd/packs-mcp whose servers do much
# concurrently run again with the detector; they mostly wait, and run beside the rest.
# Everything is built with the flags of "make build", so that it is compiled once. "go
# test" does not vet, since "make vet" does more.
PURE  := $(addprefix ./internal/,packs/lint packs/search packs/tools packs/tools/markdown packs/tools/toolpack packs/tools/toolsjson redact scan sources/archive)
PLAIN := $(addprefix ./test/,attack browser approvals audit churn e2e plant recording replicas sources) ./cmd/packs-mcp $(PURE)
ALONE := ./test/sandbox
test:
	@race=$$(scripts/race.sh) || exit 1; failed=0; export GOFLAGS='$(strip $(GOFLAGS) -trimpath)'; \
	run() { echo "go test $$*"; go test -vet=off $(if $(V),-v) "$$@"; }; \
	export CGO_ENABLED=0; run -p 3 -parallel 4 $(PLAIN) || failed=1; \
	run $(ALONE) || failed=1; \
	unset CGO_ENABLED; \
	run $$race -run '^Test(Serve|People|Signals|Replicas|Overload|Drain|Ready|PageOfATeam|ClientsWait|AnswerAfter)' ./cmd/packs-mcp & beside=$$!; \
	run $$race -run '^TestCheckIsStable$$' ./internal/packs/tools || failed=1; \
	run $$race -p 2 $$(go list ./... | grep -v $(patsubst ./%,-e '/%$$',$(PLAIN) $(ALONE))) || failed=1; \
	wait $$beside || failed=1; \
	exit $$failed

# Most of these use the processor; the others wait for processes, and run beside them. Long
# ones come first, so that both lanes end together. Fuzzing comes last, alone.
COMPUTES := fmt tidy shell workflows install-script vet staticcheck lint cross snapshot-check vuln json-passes
WAITS    := docker fresh wine e2e cards conformance image unprivileged

check:
	scripts/steps.sh build then "$(COMPUTES) $(WAITS)" "$(WAITS) $(COMPUTES)" then fuzz

# "make test" and "make check" together. The tests run alone.
ci:
	scripts/steps.sh build then test then "$(COMPUTES) $(WAITS)" "$(WAITS) $(COMPUTES)" then fuzz

bench:
	@mkdir -p .cache && go build -o .cache/bench-table ./test/bench/table && .cache/bench-table $(ARGS)

# Parts of the benchmark, each in one process.
bench-micro:
	go test -run '^$$' -bench . -benchmem ./...

# One run each of a program: plain, at each level, and under bubblewrap.
bench-sandbox:
	@mkdir -p .cache && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o .cache/bench-sandbox ./test/sandbox/bench && .cache/bench-sandbox -n 200

# /bin/true in a container, beside "podman run" with the same options: at most 1.5 times as
# long. Needs root, Podman and busybox.
bench-containers:
	@mkdir -p .cache && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o .cache/bench-containers ./test/contained/bench && .cache/bench-containers $(ARGS)

# Runs with pauses between the calls, beside bubblewrap and beside the build of another
# commit (make bench-runs BASE=v0.1.0), as root and as another user.
bench-runs:
	@BENCH_ARGS='$(ARGS)' scripts/bench-runs.sh $(BASE)

# Counts how often the arguments of one call are parsed or written as JSON: at most five times.
json-passes:
	@$(AS_BUILT) scripts/json-passes.sh

# Measures how far a run exceeds the limits on folders on disk, both normally and if no
# filter can ask the supervisor.
bench-overshoot:
	@mkdir -p .cache && CGO_ENABLED=0 go build -trimpath -o .cache/bench-sandbox ./test/sandbox/bench && CGO_ENABLED=0 go build -o .cache/probe ./test/attack/probe
	@.cache/bench-sandbox -overshoot && .cache/probe block userns,listener -- .cache/bench-sandbox -overshoot

# Applies and undoes change sets while killing them 200 times, in the package and with the
# real program at each level; and changes 200 random trees while a user and an attacker
# change them too. As root, it also sets the clock, by a nanosecond.
soak-changes:
	SANDBOX_KILLS=200 go test -count=1 -timeout 30m -run '^TestKilledServer$$' -v ./test/sandbox
	CHANGES_TEST_ROUNDS=200 go test -count=1 -timeout 30m -run 'TestKill|TestProperty|TestEnemy|TestBusyUser' -v ./internal/sandbox/changes
	@test "$$(id -u)" != 0 || CHANGES_TEST_CLOCK=1 go test -count=1 -run '^TestClockIsSet$$' -v ./internal/sandbox/changes

# 2,000 runs at each level, with random kills; nothing may be left.
soak-sandbox:
	SANDBOX_SOAK=2000 go test -count=1 -timeout 30m -run '^TestSoak$$' -v ./test/sandbox
	go test -count=1 -timeout 10m -run '^(TestAlwaysConfined|TestSwap)$$' ./test/attack -args -runs 500 -swap 2s
	scripts/unprivileged.sh all

# Counts the lines of the product by package: Go without tests and their helpers.
lines:
	@git ls-files 'cmd/*.go' 'internal/*.go' 'schemas/*.go' 'examples/*.go' ':!*_test.go' ':!*/servertest/*' ':!*/sourcestest/*' | xargs wc -l | \
		awk '$$2 != "total" { sub("/[^/]*$$", "", $$2); lines[$$2] += $$1; lines["all"] += $$1 } END { for (d in lines) print lines[d], d }' | sort -rn

# Adds one pack of a repository with 400, and all of them, beside "git clone --depth 1".
bench-sources:
	SOURCES_BENCH=5 go test -count=1 -timeout 30m -run '^TestAddBesideClone$$' -v ./test/sources

# Adds, updates and restores packs while killing the program 200 times: before each change
# of the disk in turn, with strace, and at random moments.
soak-sources:
	SOURCES_KILLS=200 go test -count=1 -timeout 30m -run '^TestKilled$$' -v ./test/sources

# Ten servers with one log and one file of grants make 1,000 calls; 200 servers are killed at
# random moments, and so are 5,000 writers of a log.
soak-approvals:
	APPROVALS_SOAK=1000 APPROVALS_KILLS=200 go test -count=1 -timeout 30m -run '^(TestTenServers|TestKilledServers)$$' -v ./test/approvals
	PACKS_MCP_AUDIT_KILLS=5000 go test -count=1 -timeout 30m -run '^TestKilledProcesses$$' -v ./test/audit

# Three servers share one store, with each engine: for a minute at full speed, then with a
# thousand people, then the same while a server is killed every five seconds. And servers
# that are killed 200 times at each step between a question and its result.
soak-replicas:
	REPLICAS_SECONDS=60 REPLICAS_CHATS=1000 REPLICAS_PAUSE=20 go test -count=1 -timeout 30m -run '^TestReplicas$$' -v ./test/replicas
	REPLICAS_KILLS=200 go test -count=1 -timeout 90m -run '^TestKilledAtEachStep$$' -v ./test/replicas

# A hundred clients over HTTP for a minute, with approvals; nothing may be left.
soak-http:
	HTTP_SOAK=60s go test -count=1 -timeout 10m -run '^TestHTTPLoad$$' -v ./internal/server/httpd

# Changes folders of packs in every way, watched by events and by polling, 20 times each.
soak-watch:
	go test -race -count=20 -parallel 8 -timeout 30m -run '^(TestTable|TestFollowed)$$' ./internal/packs/watch ./internal/server

# 200 packs change for five minutes while servers serve them, and for one minute with servers
# built with the race detector; processes that write the index are killed 200 times.
soak-churn:
	@mkdir -p .cache
	race=$$(scripts/race.sh) && go build $$race -o .cache/packs-mcp-race ./cmd/packs-mcp
	PACKS_MCP_BIN=$(CURDIR)/.cache/packs-mcp-race PACKS_MCP_CHURN=1m go test -count=1 -timeout 30m -run '^TestChurn$$' -v ./test/churn
	PACKS_MCP_CHURN=5m go test -count=1 -timeout 30m -run '^TestChurn$$' -v ./test/churn
	PACKS_MCP_INDEX_KILLS=200 go test -count=1 -timeout 30m -run '^TestIndexOfKilledProcesses$$' -v ./internal/packs

# Retakes the pictures in docs/images: of the page, and of a terminal.
pictures:
	go test -count=1 ./test/recording -update
	PACKS_MCP_REQUIRE=browser go test -count=1 -run '^TestLooks$$' ./test/browser -update

unprivileged:
	@$(AS_BUILT) scripts/unprivileged.sh

# The README's first command, in an empty home.
fresh:
	@scripts/fresh.sh

# The Windows build under Wine. The first time, it downloads 107 MB from Debian.
wine:
	@$(AS_BUILT) scripts/wine.sh

docker:
	scripts/docker.sh $(VERSION)

# All files of a release of this commit, reproducibly.
snapshot:
	scripts/snapshot.sh $(GORELEASER) --snapshot --skip=sign

# The same for a tagged commit: only the files, or a draft release at GitHub with a
# signature. The release workflow calls both.
release-files:
	scripts/snapshot.sh $(GORELEASER) --skip=sign,publish,announce

release:
	scripts/snapshot.sh $(GORELEASER)

# Builds the image with Podman; if no registry can be reached, from base images made here.
image: build
	@scripts/image.sh $(VERSION)

# Makes the last commit's release twice, in two places, and compares; then installs, starts
# and inspects it.
snapshot-check:
	@GORELEASER='$(GORELEASER)' scripts/snapshot-check.sh

# install.sh against a server on this machine, with good files and bad ones.
install-script:
	$(AS_BUILT) go test -count=1 ./release/install

# The workflows of GitHub, which run only there.
workflows:
	@scripts/lint.sh $(ACTIONLINT)

fmt:
	@files=$$(find . -name '*.go' -not -path '*/.*/*' -not -path '*/node_modules/*' -exec gofmt -l {} +); \
	if [ -n "$$files" ]; then echo "not formatted, run gofmt -w:" $$files >&2; exit 1; fi

vet:
	$(AS_BUILT) go vet ./...

tidy:
	go mod tidy -diff
	go mod verify

shell:
	@scripts/shell.sh

staticcheck:
	@$(AS_BUILT) scripts/lint.sh $(STATICCHECK) ./...

lint:
	@$(AS_BUILT) scripts/lint.sh $(GOLANGCI) run ./...

vuln:
	@$(AS_BUILT) scripts/vuln.sh $(GOVULNCHECK)

cross:
	@$(AS_BUILT) scripts/cross.sh

fuzz:
	@$(AS_BUILT) scripts/fuzz.sh $(FUZZTIME) $(FUZZPARTS)

e2e: build
	@scripts/e2e.sh bin/packs-mcp

# Runs real agents with scripted models; "make agents ARGS=-update" writes what they do to
# docs/reference/clients.md. The first time, it downloads 1.6 GB from npm.
agents: build
	@scripts/agents.sh bin/packs-mcp $(ARGS)

# Connects those agents with packs-mcp setup, and starts them with the result.
agents-setup: build
	@scripts/agents-setup.sh bin/packs-mcp

# Inspects the program with the MCP Inspector.
inspector: build
	@scripts/inspector.sh bin/packs-mcp

# Shows the approval card on the MCP Inspector's page, and answers there in Chromium.
cards: build
	@$(AS_BUILT) scripts/cards.sh bin/packs-mcp

# Runs the official conformance suite over HTTP.
conformance: build
	@$(AS_BUILT) scripts/conformance.sh bin/packs-mcp

clean:
	rm -rf bin .cache test/e2e/node_modules test/e2e/langchain/node_modules
