# ebtrain: build, try, test. `make help` lists the targets.
SHELL := /bin/bash
GO    ?= go
# What recipes start, .ci/* and tests, finds the same Go and gofmt, and what Debian keeps
# from the PATH of users: Slurm's daemons and iproute2.
export PATH := $(if $(filter-out go,$(GO)),$(shell $(GO) env GOROOT)/bin:)$(PATH):/usr/sbin:/sbin
MAINS := ./launch/ddplaunch ./launch/chaos ./launch/onhosts ./trainer/train ./trainer/sample ./trainer/evaluate ./trainer/experiment ./trainer/curves ./data/mkshards ./collective/collbench ./trainer/stepbench ./trainer/bench

# oneDNN does the heavy lifting on the CPU. Where it cannot be had, the plain Go
# build takes its place. Expanded when a recipe runs, so after `deps`.
TAGS = $(if $(wildcard /usr/include/dnnl.h /usr/local/include/dnnl.h /usr/include/oneapi/dnnl/dnnl.h),,nodnnl)

.PHONY: help deps build demo test check race fuzz random crosscheck gpu-check nvrtc-check headers-check gorgoniacu arm64 lint clean

comma := ,
space := $(subst ,, )

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

deps: ## install what is missing (oneDNN, by apt), or say why not
	@.ci/deps

build: deps ## build every program into bin/
	@mkdir -p bin
	$(GO) build -tags '$(TAGS)' -o bin/ $(MAINS)

demo: build ## train BiDVL on two ranks on the built-in pictures, and show what it learned
	rm -rf runs/demo
	bin/ddplaunch -nproc 2 train --algo bidvl --net conv32 --width 16 --data synth --batch 32 --steps 200 --out runs/demo
	bin/evaluate --run runs/demo --limit 200 --measures rmse
	bin/curves runs/demo --columns recon,lower,upper
	@echo; echo 'Pictures, of samples, of test pictures above their reconstructions, and of the losses:'; ls runs/demo/samples/step-00000200.png; ls runs/demo/samples/recon-test-step-00000200.png; ls runs/demo/curves.png

test: deps ## everything a commit must pass
	@.ci/deps tests
	@.ci/test '$(TAGS)'

check: deps ## the quick part of test: format, vet, short tests
	@test -z "$$(gofmt -l .)" || { echo "not gofmt'ed:"; gofmt -l .; exit 1; }
	$(GO) vet -tags '$(TAGS)' ./...
	$(GO) test -tags '$(TAGS)' -count=1 -short -shuffle=on ./...

race: deps ## all tests, and the programs that they start, under the race detector (long)
	GORACE=atexit_sleep_ms=100 $(GO) test -tags '$(TAGS)' -count=1 -race -timeout 90m ./...

FUZZTIME ?= 10s
fuzz: deps ## run every fuzz target for FUZZTIME (10s)
	@set -e -o pipefail; packages=$$($(GO) list -tags '$(TAGS)' ./...); for pkg in $$packages; do \
	  targets=$$($(GO) test -tags '$(TAGS)' -list '^Fuzz' "$$pkg" | sed -n '/^Fuzz/p'); for f in $$targets; do \
	    echo "== $$pkg $$f"; $(GO) test -tags '$(TAGS)' -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "$$pkg"; \
	  done; done

RANDOMTIME ?= 10m
SEED ?= 1
random: deps ## random programs (on the CPU and on doubles of GPUs), convolutions and products, for RANDOMTIME (10m) each, from seed SEED (1)
	$(GO) test -tags '$(TAGS)' -count=1 -timeout 0 -v -run RandomGraphs ./ddp/exec/cpu -graphs.time $(RANDOMTIME) -graphs.seed $(SEED)
	$(GO) test -tags '$(TAGS)' -count=1 -timeout 0 -v -run RandomGraphs ./ddp/exec/cuda -graphs.time $(RANDOMTIME) -graphs.count 0 -graphs.seed $(SEED)
	$(GO) test -tags '$(TAGS)' -count=1 -timeout 0 -v -run RandomProducts ./ddp/exec/cpu/linalg/engine/enginetest -products.time $(RANDOMTIME) -products.seed $(SEED)

PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
CASES ?=
crosscheck: ## steps, graphs, samplers, statistics and networks of features beside PyTorch's, in float64 (python3-torch; CASES='lm cd' for some)
	@$(PYTHON) -c 'import torch' 2>/dev/null || { echo 'make crosscheck: $(PYTHON) has no PyTorch: apt-get install python3-torch, or name another with PYTHON=FILE (nothing was compared)'; exit 2; }
	@mkdir -p bin && rm -rf bin/crosscheck-dumps
	@$(GO) build -tags '$(TAGS)' -o bin/crosscheck ./trainer/crosscheck
	@bin/crosscheck --out bin/crosscheck-dumps --cases '$(subst $(space),$(comma),$(strip $(CASES)))'
	@$(PYTHON) trainer/crosscheck/peers/compare.py bin/crosscheck-dumps

# The PyTorch program that part d is timed beside, if there is one: no part of this repository.
PEER ?= $(wildcard ../shared/peers/bidvl_gpu.py)
PARTS ?= a,b,c,d
LIMIT ?= 10m
gpu-check: ## with an NVIDIA GPU: what only that can show, into bin/gpu-results (PARTS=a,b,c,d LIMIT=10m PEER=FILE)
	@mkdir -p bin
	$(GO) build -tags nodnnl -trimpath -ldflags "-s -w -X main.commit=$$(git describe --always --abbrev=40 --exclude '*' --dirty=+modified)" -o bin/gpucheck ./trainer/gpucheck
	@test $$(stat -c %s bin/gpucheck) -lt 67108864 || { echo 'bin/gpucheck is not below 64 MiB'; exit 1; }
	bin/gpucheck --out bin/gpu-results --part '$(PARTS)' --limit '$(LIMIT)' --peer '$(PEER)'

nvrtc-check: ## every CUDA kernel through NVIDIA's compiler, which is fetched if need be; no GPU (ten minutes)
	@.ci/nvrtc-check '$(TAGS)' all

headers-check: ## what is declared of CUDA and NCCL, and gorgoniacu, against NVIDIA's headers, which are fetched if need be (1 GB); no GPU
	@.ci/headers-check '$(TAGS)'

CUDA_HEADERS = $(firstword $(wildcard $(addsuffix /cuda.h,$(CUDA_HOME)/include /usr/local/cuda/include /usr/include)))
gorgoniacu: ## the adapter for gorgonia.org/cu, which needs CUDA's headers up to version 12
	@v=$$(sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' $(CUDA_HEADERS) /dev/null); \
	if [ -z "$$v" ]; then echo 'make gorgoniacu: no cuda.h in $$CUDA_HOME/include, /usr/local/cuda/include or /usr/include: install the headers of CUDA 12 (nothing was built)'; \
	elif [ $$v -ge 13000 ]; then echo "make gorgoniacu: $(CUDA_HEADERS) is of CUDA $$((v/1000)), and gorgonia.org/cu compiles up to 12: set CUDA_HOME to one (nothing was built)"; \
	else CGO_CFLAGS="-I$(dir $(CUDA_HEADERS))" $(GO) vet -tags gorgoniacu ./collective/cuda/gorgoniacu; fi

arm64: ## for Arm processors: build all of it, and run the kernels' tests in an emulator (qemu-user-static, gcc-aarch64-linux-gnu)
	@.ci/arm64

lint: deps ## golangci-lint, at the pinned version
	@.ci/lint '$(TAGS)'

clean: ## remove what was built
	rm -rf bin
