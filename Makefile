# The front door. CMake does the work; the presets are in CMakePresets.json.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
BUILD := build/dev

.DEFAULT_GOAL := all
.PHONY: all lib demo test test-gpu check soak bench lint format fuzz install wheel docs clean bootstrap

all: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS)

bootstrap:
	tools/bootstrap

$(BUILD)/build.ninja: | bootstrap
	cmake --preset dev

## Installs what is missing, builds, and shows the main job on an app's files.
demo: all
	tools/demo

## The tests of a plain build: minutes.
test: all
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

## On a machine with a GPU: the operators' tests there, once with kernels that nvcc embedded and once with kernels compiled at run time.
## PYTHON has torch, numpy and pytest.
PYTHON ?= python3
test-gpu:
	cmake --preset dev -B build/gpu -DFELLOE_TOOL=OFF -DFELLOE_BENCH=OFF -DFELLOE_CUDA=AUTO -DFELLOE_PYTHON=$(PYTHON)
	cmake --build build/gpu -j $(JOBS)
	FELLOE_TEST_DEVICE=cuda ctest --test-dir build/gpu --output-on-failure -LE gpu
	FELLOE_TEST_DEVICE=cuda FELLOE_KERNELS=nvrtc ctest --test-dir build/gpu --output-on-failure -LE gpu -E python/

## What has to pass before a change is taken: sanitizers, the wheel, lint, generated pages.
check: test
	tools/bootstrap --lint
	cmake --preset asan && cmake --build build/asan -j $(JOBS) && ctest --test-dir build/asan --output-on-failure -j $(JOBS)
	cmake --preset tsan && cmake --build build/tsan -j $(JOBS) && ctest --test-dir build/tsan --output-on-failure -j $(JOBS) -R '^(device|raster|surface|bake|base|elf|check|space|cases)/'
	$(MAKE) wheel
	$(MAKE) lint

lint: $(BUILD)/build.ninja
	tools/bootstrap --lint
	tools/lint

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

## FUZZ_SECONDS each, over every target; the corpora are in fuzz/corpus.
FUZZ_SECONDS ?= 600
fuzz:
	tools/bootstrap --fuzz
	cmake --preset fuzz && cmake --build build/fuzz -j $(JOBS)
	tools/fuzz $(FUZZ_SECONDS)

bench: bootstrap
	cmake --preset release && cmake --build build/release -j $(JOBS)
	tools/bench

## The library alone: a C compiler and nothing else.
lib:
	cmake --preset lib-only && cmake --build build/lib-only -j $(JOBS)

install: bootstrap
	cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) && cmake --build build/release -j $(JOBS)
	DESTDIR=$(DESTDIR) cmake --install build/release

## The Python package in dist/, and its run on every Python that is named: make wheel PYTHONS="python3.8 python3.12".
PYTHONS ?= python3
wheel: bootstrap
	$(firstword $(PYTHONS)) python/backend.py dist
	$(firstword $(PYTHONS)) tests/python/wheel.py "$$(ls -t dist/felloe-*.whl | head -n 1)" $(PYTHONS)

## Pages that are made from the program itself; CI fails when they are stale.
docs: all
	tools/docs

clean:
	rm -rf build
