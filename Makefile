# Needs Go 1.26 and make, and besides them, by target:
#
#	race                        a C compiler
#	standins, conformance, e2e  Node.js 20 or later, with npm
#	template                    Python 3.10 or later, with its venv module
#	deploy, logs                the AWS SAM CLI
#	invoke                      the AWS SAM CLI, Docker
#	delete                      the AWS SAM CLI, the AWS CLI v2
#	drain                       the AWS CLI v2, Python 3.10 or later
#	ci                          what race, e2e and template need
#
# What `lint`, `standins`, `template` and `e2e` work with, they fetch themselves.
# `make test` runs the tests of the AWS side too, once `make standins` has run.

GO       ?= go
PKGS     ?= ./...
FUZZTIME ?= 60s
CHECKS   ?= 2000
CONFIG   ?= sluice.yaml
DATA     ?= ./data
LISTEN   ?= 127.0.0.1:8080
BENCH    ?=

# On AWS: the environment of samconfig.toml, and what `make invoke` calls with what.
ENV      ?= dev
FUNCTION ?= IngestFunction
EVENT    ?= events/ingest-single.json
ENVVARS  ?= events/env.json
STRICT   ?= --strict

# Static, without symbols or paths of the machine that built it.
GOBUILD := CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w"
LINTER  := .ci/bin/golangci-lint

# The first lines of recipes that need a tool, or an environment of samconfig.toml:
# whatever is missing is said before anything runs.
needs = @command -v $(1) >/dev/null || { echo "make $@ needs $(2), and there is no $(1) in PATH" >&2; exit 2; }
needs_sam = $(call needs,sam,the AWS SAM CLI)
needs_env = @test -n "$(STACK)" || { echo "make $@: samconfig.toml has no ENV=$(ENV); it has" \
	$$(sed -n 's/^\[\([^.]*\)\.global\..*/\1/p' samconfig.toml) >&2; exit 2; }

# What went untested is the last that a run says.
left_out = @{ command -v node && test -d .ci/standins/node_modules && test -x .ci/bin/s3; } >/dev/null || \
	echo "The AWS suites were left out: make standins"

# The environment's own word on its stack and its processor.
samconfig = $(shell awk -F '[=", ]+' '/^\[/ { on = /^\[$(ENV)\./ } \
	on { for (i = 1; i < NF; i++) if ($$i == "$(1)") { print $$(i + 1); exit } }' samconfig.toml)
STACK     = $(call samconfig,stack_name)
GOARCHS   = arm64=arm64 x86_64=amd64
LAMBDARCH = $(patsubst $(call samconfig,Architecture)=%,%,$(filter $(call samconfig,Architecture)=%,$(GOARCHS)))

.DEFAULT_GOAL := help

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Build, and serve CONFIG (sluice.yaml) on LISTEN (127.0.0.1:8080) with its state under DATA (./data)
	bin/sluice serve --config $(CONFIG) --listen $(LISTEN) --data $(DATA)

.PHONY: build
build: ## Build bin/sluice
	$(GOBUILD) -o bin/sluice ./functions/local

.PHONY: test
test: ## Vet, and run every test once, in random order
	$(GO) vet $(PKGS)
	$(GO) test -shuffle=on $(PKGS)
	$(left_out)

# End-to-end tests start processes of their own, into which the detector does not see.
.PHONY: race
race: ## Run every test but those end to end three times under the race detector (needs a C compiler)
	$(GO) test -race -shuffle=on -count=3 -skip '^TestE2E' $(PKGS)
	$(left_out)

.PHONY: lint
lint: $(LINTER) ## Run the linter, at its pinned version
	$(LINTER) run $(PKGS)

# The linter lives in a module of its own, so that what it needs stays out of ours.
$(LINTER): .ci/tools/go.mod .ci/tools/go.sum
	cd .ci/tools && GOBIN="$(CURDIR)/.ci/bin" $(GO) install -ldflags "-s -w" \
		github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME (60s)
	@for pkg in $$($(GO) list $(PKGS)); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

# Property tests are those whose test binary holds rapid, and so knows its flags.
.PHONY: simulate
simulate: ## Run the property tests with CHECKS (2000) random cases each
	$(GO) test -count=1 -timeout 60m $$($(GO) list -test \
		-f '{{$$p := .}}{{range .Deps}}{{if eq . "pgregory.net/rapid"}}{{println $$p.ForTest}}{{end}}{{end}}' \
		$(PKGS) | sort -u) -rapid.checks=$(CHECKS)

.PHONY: standins
standins: .ci/standins/node_modules/.package-lock.json .ci/bin/s3 ## Install what the tests start in place of AWS (needs Node.js 20)

# npm writes this file when it is through. No package needs its install script.
.ci/standins/node_modules/.package-lock.json: .ci/standins/package.json .ci/standins/package-lock.json
	@command -v npm >/dev/null || { echo "make standins needs Node.js 20 or later, and there is no npm in PATH" >&2; exit 2; }
	cd .ci/standins && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

# The stand-in for S3 lives in a module of its own, as the linter does.
.ci/bin/s3: .ci/s3/main.go .ci/s3/go.mod .ci/s3/go.sum
	cd .ci/s3 && CGO_ENABLED=0 $(GO) build -ldflags "-s -w" -o "$(CURDIR)/$@" .

.PHONY: conformance
conformance: ## Run the shared suites, and say which adapters passed them (needs Node.js 20)
	.ci/conformance

# AWS's own emulator lives in a module of its own, as the linter does.
.ci/bin/aws-lambda-rie: .ci/rie/go.mod .ci/rie/go.sum
	cd .ci/rie && GOBIN="$(CURDIR)/.ci/bin" $(GO) install -ldflags "-s -w" \
		github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie

.PHONY: e2e
e2e: build standins .ci/bin/aws-lambda-rie ## Run the one list of scenarios on the real binary and on the real functions (needs Node.js 20)
	@log=$$(mktemp) && trap 'rm -f "$$log"' EXIT && \
	{ SLUICE_E2E_MEASURE=1 $(GO) test -count=1 -timeout 10m -v -run E2E ./functions/local ./functions/internal/awse2e >"$$log" 2>&1 || \
		{ cat "$$log"; exit 1; }; } && \
	{ ! grep -- '--- SKIP' "$$log"; } && \
	grep -oE '^ok .*|(scenarios: .*passed|delivered .* after its deadline|[0-9]+ faults; .*|cold start and first answer .*)$$' "$$log" && \
	for system in bin/sluice AWS; do grep -q "scenarios: $$system: [1-9]" "$$log" || { echo "the scenarios did not run on $$system"; exit 1; }; done

.PHONY: bench
bench: build ## Measure against a bare server in the same run; BENCH="-only a,b" picks scenarios
	$(GOBUILD) -o bin/bench ./functions/bench
	bin/bench -binary bin/sluice $(BENCH)

.PHONY: release
release: ## Build the binaries for linux, amd64 and arm64
	GOOS=linux GOARCH=amd64 $(GOBUILD) -o bin/sluice-linux-amd64 ./functions/local
	GOOS=linux GOARCH=arm64 $(GOBUILD) -o bin/sluice-linux-arm64 ./functions/local

.PHONY: template
template: ## Check template.yaml: the linter, the translation, and sam (needs Python 3.10)
	@python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || \
		{ echo "make $@ needs Python 3.10 or later with its venv module, as python3 in PATH" >&2; exit 2; }
	.ci/template

.PHONY: validate
validate: template

.PHONY: deploy
deploy: ## Build for AWS with CONFIG, and deploy ENV (dev, staging, prod) of samconfig.toml; STRICT= in spite of warnings
	$(needs_env)
	$(needs_sam)
	$(GO) run ./functions/local lint --target aws $(STRICT) --config $(CONFIG)
	sam build --config-env $(ENV)
	sam deploy --config-env $(ENV)

.PHONY: logs
logs: ## Follow the logs of ENV's functions
	$(needs_env)
	$(needs_sam)
	sam logs --config-env $(ENV) --tail $(foreach f,$(LAMBDAS),--cw-log-group /sluice/$(STACK)/$(f))

.PHONY: drain
drain: ## Flush ENV's stack until it is proven empty, or say what holds; stop the senders first, or STOP=1 does
	$(needs_env)
	$(call needs,aws,the AWS CLI v2)
	$(call needs,python3,Python 3.10 or later)
	@.ci/drain $(STACK)

# CloudFormation never deletes what holds data, so a person is told what is left.
.PHONY: delete
delete: ## Delete ENV's stack; its table and dead letters stay, and it says how to delete them
	$(needs_env)
	$(needs_sam)
	$(call needs,aws,the AWS CLI v2)
	@left=$$(aws cloudformation describe-stacks --stack-name $(STACK) --output text --query \
		"Stacks[0].Outputs[?OutputKey=='TableName'||OutputKey=='DeadLetterQueueUrl'||OutputKey=='ReplayQueueUrl'].OutputValue") && \
	sam delete --config-env $(ENV) && \
	echo "These hold data, and stay until you delete them:" && \
	for name in $$left; do case $$name in \
		https:*) echo "  aws sqs delete-queue --queue-url $$name";; \
		*) echo "  aws dynamodb delete-table --table-name $$name";; \
	esac; done

# The events' tokens are no variables of the template, and sam passes on no others.
.PHONY: invoke
invoke: export CONFIG := events/sluice.yaml
invoke: ## Run FUNCTION here with EVENT and CONFIG (events/sluice.yaml); needs Docker, and resources named in ENVVARS
	$(needs_env)
	$(needs_sam)
	sam build --config-env $(ENV) $(FUNCTION)
	@built=.aws-sam/build/template.yaml && \
	awk '{ print } sub(/SLUICE_CONFIG:.*/, "ORDERS_TOKEN: orders-token") { print } \
		sub(/ORDERS_TOKEN:.*/, "SLUICE_CONTROL_TOKEN: control-token") { print }' $$built >$$built.new && mv $$built.new $$built
	sam local invoke $(FUNCTION) --config-env $(ENV) --event $(EVENT) --env-vars $(ENVVARS)

# What `sam build` calls for each function of template.yaml, and anybody may by
# hand: make build-IngestFunction ARTIFACTS_DIR=dir. Without the version control
# stamp, code that has not changed is not deployed again.
LAMBDAS := ingest receive check deliver flush control
LAMBDA_TARGETS := build-IngestFunction build-ReceiveFunction build-CheckFunction build-DeliverFunction build-FlushFunction build-ControlFunction

# These call none but AWS, which answers by HTTP/1.1: they are smaller without HTTP/2.
build-IngestFunction build-ReceiveFunction build-CheckFunction: LEAN := ,nethttpomithttp2

.PHONY: $(LAMBDA_TARGETS)
$(LAMBDA_TARGETS): build-%Function:
	@test -n "$(ARTIFACTS_DIR)" || { echo "make $@ ARTIFACTS_DIR=dir: say where to build it"; exit 2; }
	@test -n "$(LAMBDARCH)" || { echo "samconfig.toml has no Architecture for ENV=$(ENV)"; exit 2; }
	CGO_ENABLED=0 GOOS=linux GOARCH=$(LAMBDARCH) $(GO) build -buildvcs=false -tags lambda.norpc$(LEAN) -trimpath -ldflags "-s -w" \
		-o "$(ARTIFACTS_DIR)/bootstrap" ./functions/$(shell echo $* | tr A-Z a-z)
	cp $(CONFIG) "$(ARTIFACTS_DIR)/sluice.yaml"

.PHONY: clean
clean: ## Remove what was built; DATA stays
	rm -rf bin .ci/bin .ci/python/venv .aws-sam

.PHONY: ci
ci: ## Everything that must hold before a change is taken
	.ci/run
