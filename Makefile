# The whole of Fletching from one place. `make help` lists the targets.

.DEFAULT_GOAL := build
SHELL := /bin/bash
PYTHON := .venv/bin/python

LANGUAGES := $(notdir $(patsubst %/language.toml,%,$(wildcard cpp/language.toml bindings/*/language.toml)))

.PHONY: help setup generate build roundtrip rule-cases mutants mutants-code targets platforms faults fuzz conformance
.PHONY: test-gpu test-gpu-standin gpu-programs bench bench-gpu bench-compile docs test test-all format clean
.PHONY: packages test-packages compare-packages compatible compatible-guards rehearsal release release-notes
.PHONY: test-spec $(addprefix test-,$(LANGUAGES)) $(addprefix bench-,$(LANGUAGES))
.PHONY: $(LANGUAGES:%=test-%-all) $(addprefix mutants-,$(LANGUAGES))

help: ## list the targets
	@grep -hE '^[a-z$$].*: .*## ' $(MAKEFILE_LIST) | sed -E 's/^(.*: )?([a-z%-]+): [^#]*## /\2\t/' | expand -t 18

setup: ## install what the machine lacks: packages, .venv
	@tools/setup

generate: setup ## write every generated file from spec/
	@.venv/bin/fletching generate

build: setup ## build the libraries and programs of every language
	@tools/build

# A language that does not build is reported by what comes after: its cells are missing.
roundtrip: ## data through every language and back; V=1 prints all, build/roundtrip.html shows it
	@tools/setup --roundtrip
	@tools/build --roundtrip || true
	@$(PYTHON) tests/roundtrip/roundtrip.py $(if $(V),--matrix)

rule-cases: ## the cases of each rule, as a table; fails if one is missing
	@$(PYTHON) tests/rules/rule_cases.py

test: setup ## every test of every language, keeps going, one verdict line per language
	@$(PYTHON) tools/suite.py

mutants: setup ## wrong specs in every language; the tests of each have to notice
	@tools/build
	@$(PYTHON) tests/mutants/mutants.py

mutants-code: setup ## mechanical changes of the code; the tests of C++ and of the generator have to notice
	@tools/build extract cpp
	@$(PYTHON) tests/mutants_code/mutants_code.py

$(addprefix mutants-,$(LANGUAGES)): mutants-%: setup ## the same with one language's library; MUTANTS=--sample is shorter
	@tools/build --with-needed $*
	@$(PYTHON) tests/mutants_code/language_mutants.py $* $(MUTANTS)

test-all: setup ## `test` and everything that takes longer
	@$(PYTHON) tools/suite.py --all

# What cannot be installed is absent in the table, and the rest is run.
targets: setup ## layouts and tests on other machines, cross compiled and emulated; prints a table
	@tests/targets/setup || true
	@$(PYTHON) tests/targets/targets.py

platforms: setup ## what runs on which platform, and what only compiles; PLATFORMS=--write-docs keeps the table
	@packages/platforms/setup || true
	@$(PYTHON) packages/platforms.py $(PLATFORMS)

conformance: setup ## released libraries against the rules; CONFORMANCE="--write PACKAGE..." keeps the table
	@tools/build cpp
	@$(PYTHON) tests/peers/table/table.py $(CONFORMANCE)

faults: setup ## every call of a vendor's library fails once; prints a table, writes build/faults.json
	@tools/build cpp
	@$(PYTHON) tests/faults/faults.py

fuzz: setup ## random input for everything that reads foreign bytes
	@tests/fuzz/run

bench: setup ## every language and its peers in one run: build/bench.json, docs/measured/benchmarks.md
	@$(PYTHON) tests/benchmarks/bench.py --curves --write-docs $(BENCH)

$(addprefix bench-,$(LANGUAGES)): bench-%: setup ## what one language's library costs, compared with others; fails over a limit
	@$(PYTHON) tests/benchmarks/bench.py $* $(BENCH)

bench-compile: setup ## what a compiler takes for the C++ headers, beside nanoarrow and libarrow; fails over a limit
	@tools/install valgrind:valgrind
	@$(PYTHON) tests/benchmarks/bench.py cpp --no-build --only compile

packages: setup ## a release in build/packages: every package, checksums, SBOM, manifest
	@packages/setup
	@tools/build extract cpp
	@$(PYTHON) packages/packages.py build

test-packages: setup ## each package of `make packages` in a fresh project with empty caches
	@packages/setup
	@$(PYTHON) packages/packages.py test

compare-packages: setup ## builds the release again in another folder on another day, and compares the bytes
	@packages/setup
	@$(PYTHON) packages/packages.py compare

compatible: setup ## the APIs of build/packages against those of an earlier one: BASELINE=FOLDER
	@packages/setup
	@$(PYTHON) packages/api.py compatible '$(BASELINE)'

compatible-guards: setup ## plants a break of each API, which `compatible` must name
	@packages/setup
	@$(PYTHON) packages/api.py guards

# These install nothing: such a machine has what it has.
GPU_PYTHON = $(or $(wildcard $(PYTHON)),python3)
test-gpu: ## on a machine with an NVIDIA GPU: kernel, gate, events, streams, peers; GPU=--write-docs keeps it
	@$(GPU_PYTHON) tests/gpu/gpu.py $(GPU)

test-gpu-standin: ## the same on the stand-in driver, no GPU
	@$(GPU_PYTHON) tests/gpu/gpu.py --standin $(GPU)

gpu-programs: ## what travels to a GPU machine, in build/gpu-programs; test-gpu GPU="--programs FOLDER"
	@tests/gpu/build-programs

bench-gpu: ## on such a machine: what a handoff costs, compared with hand-written driver calls; fails over a limit
	@$(GPU_PYTHON) tests/gpu/gpu.py --bench $(GPU)

rehearsal: setup ## two releases into local registries, with a yank, and users of each
	@$(PYTHON) packages/rehearsal.py

docs: ## a site of all pages in build/site, links checked
	@docs/site/build

release: setup ## set VERSION=X.Y.Z everywhere and date the change log; commits nothing
	@$(PYTHON) packages/release.py '$(VERSION)'

release-notes: ## what the change log says of this version
	@python3 packages/release.py --notes

test-spec: setup ## the tests of the spec and of the generator
	@$(PYTHON) tools/suite.py spec

$(addprefix test-,$(LANGUAGES)): test-%: setup ## one language's tests
	@tools/build --with-needed $*
	@$(PYTHON) tools/suite.py $*

$(LANGUAGES:%=test-%-all): test-%-all: setup ## the same with everything that takes longer
	@tools/build --with-needed $*
	@$(PYTHON) tools/suite.py --all $*

format: setup ## run every language's formatter
	@.venv/bin/ruff check --fix --quiet .
	@.venv/bin/ruff format --quiet .
	@$(PYTHON) tools/language_info.py format

clean: ## remove what was built, but not what was installed
	@rm -rf build
