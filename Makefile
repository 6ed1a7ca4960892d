# The front door. CMake does the work; the presets are in CMakePresets.json.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
BUILD := build/dev

.DEFAULT_GOAL := all
.PHONY: all lib demo test check soak bench lint format fuzz install wheel docs clean bootstrap

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

## What has to pass before a change is taken: sanitizers, lint, generated pages.
check: test
	tools/bootstrap --lint
	cmake --preset asan && cmake --build build/asan -j $(JOBS) && ctest --test-dir build/asan --output-on-failure -j $(JOBS)
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

## A wheel for every Python: dist/felloe-*-py3-none-manylinux_*.whl
wheel:
	python3 python/backend.py dist

## Pages that are made from the program itself; CI fails when they are stale.
docs: all
	tools/docs

clean:
	rm -rf build
