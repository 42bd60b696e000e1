# ebtrain: build, try, test. `make help` lists the targets.
SHELL := /bin/bash
GO    ?= go
MAINS := ./launch/ddplaunch ./launch/chaos ./trainer/train ./trainer/sample ./trainer/evaluate ./trainer/experiment ./data/mkshards ./collective/collbench ./trainer/stepbench

# oneDNN does the heavy lifting on the CPU. Where it cannot be had, the plain Go
# build takes its place. Expanded when a recipe runs, so after `deps`.
TAGS = $(if $(wildcard /usr/include/dnnl.h /usr/local/include/dnnl.h /usr/include/oneapi/dnnl/dnnl.h),,nodnnl)

.PHONY: help deps build demo test check race fuzz random lint clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

deps: ## install what is missing (oneDNN, by apt), or say why not
	@.ci/deps

build: deps ## build every program into bin/
	@mkdir -p bin
	$(GO) build -tags '$(TAGS)' -o bin/ $(MAINS)

demo: build ## train BiDVL on two ranks on the built-in pictures, and show what it learned
	rm -rf runs/demo
	bin/ddplaunch -nproc 2 train --algo bidvl --net conv32 --width 16 --data synth --batch 32 --steps 200 --out runs/demo
	bin/evaluate --run runs/demo --limit 200
	@echo; echo 'Pictures, of samples and of test pictures above their reconstructions:'; ls runs/demo/samples/step-00000200.png; ls runs/demo/samples/recon-test-step-00000200.png

test: deps ## everything a commit must pass
	@.ci/test '$(TAGS)'

check: deps ## the quick part of test: format, vet, short tests
	@test -z "$$(gofmt -l .)" || { echo "not gofmt'ed:"; gofmt -l .; exit 1; }
	$(GO) vet -tags '$(TAGS)' ./...
	$(GO) test -tags '$(TAGS)' -count=1 -short -shuffle=on ./...

race: deps ## all tests under the race detector
	$(GO) test -tags '$(TAGS)' -count=1 -race -timeout 15m ./...

FUZZTIME ?= 10s
fuzz: deps ## run every fuzz target for FUZZTIME (10s)
	@set -e; $(GO) list -tags '$(TAGS)' ./... | while read -r pkg; do \
	  for f in $$($(GO) test -tags '$(TAGS)' -list '^Fuzz' "$$pkg" | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; $(GO) test -tags '$(TAGS)' -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "$$pkg"; \
	  done; done

RANDOMTIME ?= 10m
SEED ?= 1
random: deps ## random programs, convolutions and products, for RANDOMTIME (10m) each, from seed SEED (1)
	$(GO) test -tags '$(TAGS)' -count=1 -timeout 0 -v -run RandomGraphs ./ddp/exec/cpu -graphs.time $(RANDOMTIME) -graphs.seed $(SEED)
	$(GO) test -tags '$(TAGS)' -count=1 -timeout 0 -v -run RandomProducts ./ddp/exec/cpu/linalg/engine/enginetest -products.time $(RANDOMTIME) -products.seed $(SEED)

lint: deps ## golangci-lint, at the pinned version
	@.ci/lint '$(TAGS)'

clean: ## remove what was built
	rm -rf bin
