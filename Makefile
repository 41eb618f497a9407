# make demo   set up, make the quickstart data set with the simulator, show one conversation
# make demo-real  set up, with a real model (98 MB) that runs on this machine; make five conversations with it
# make check  lint, types, import contracts and unit tests: what to run before a commit
# make test   the same with all tests
# make test AGAIN=yes  as CI does: tests that failed run once more, alone; only those that fail twice count
# make test-long  all of the tests that repeat themselves (kills, seeds, generated examples), of which `make test` runs a small dose
# make slowest  all tests, and which cost the most CPU
# make test-rl  the data on real trainers (TRL, CPU torch), in an environment of its own: .venv-rl
# make test-real  every protocol and asker with a real, very small model in this process (98 MB)
# make test-cluster  a real Ray cluster on this machine, whose workers and heads are killed (80 MB)
# make proof  SmolLM2 learns from data that it made with edgen, and is tested before and after (docs/improve.md); 8 minutes
# make without-domain  the unit tests of copies of the tree without all domains, then without each (DOMAINS="forum guided" for some)
# make bench  print the benchmarks
# make docs   what is generated in README.md, docs/ and validators/ as it is now: outputs, schemas, pages, the picture
# make docs-site  the documentation site in site/, out of docs/ and the docstrings
# make fresh  `make demo` and `make check` on a machine that has never seen edgen: a new clone in an empty home (.ci/fresh-machine)
# make lock   after a change of dependencies: uv.lock and the two files exported from it (needs uv)
#
# uv is used where it is installed, else venv and pip; both install what the committed lock names.

# uv takes the certificates that this machine trusts, as pip does (two names, for uv's newer and older versions).
export UV_SYSTEM_CERTS ?= 1
export UV_NATIVE_TLS ?= 1
VENV := .venv
BIN := $(VENV)/bin
LOCKS := pyproject.toml uv.lock requirements.txt requirements-dev.txt
.DEFAULT_GOAL := demo
.PHONY: demo demo-real check test lint types contracts unit bench docs docs-site lock clean

CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# Tests of processes and servers mostly wait, so that more of them than there are cores run side by side: with two for a
# core, cores stood still for a quarter of the time.
WORKERS ?= $(shell echo $$((3 * $(CORES))))
SIDE_BY_SIDE := $(MAKE) --no-print-directory -j 2
# Tests write a gigabyte, and sync it: in memory, where there is room for it, none waits for a disk.
TMPDIR ?= $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000 {print "/dev/shm"}')
export TMPDIR
PYTEST := $(BIN)/python -m pytest -q --dist worksteal
# With AGAIN=yes, as CI calls it, tests that failed run once more, alone: only those that fail twice fail the target.
AGAIN ?=
and_again = $(if $(AGAIN),|| { [ $$? = 1 ] && sh .ci/again $1; })
# CI runs these beside `make test`: each notes its failed tests in a folder of its own.
test-real: export PYTEST_ADDOPTS := -o cache_dir=.pytest_cache/real
test-cluster: export PYTEST_ADDOPTS := -o cache_dir=.pytest_cache/cluster
test-rl: export PYTEST_ADDOPTS := -o cache_dir=.pytest_cache/rl
# Where Python is told to write no bytecode, each worker would compile all tests and each process edgen anew.
export PYTHONDONTWRITEBYTECODE :=
# Made once by one process, while mypy runs: compiled tests, which all workers then read.
COMPILED := .pytest_cache/compiled

demo: $(VENV)/.core
	@$(BIN)/edgen generate jobs/quickstart.yaml --show 1

demo-real: $(VENV)/.local
	@$(BIN)/edgen generate jobs/real.yaml --show 5

# `make check TYPES=no` leaves mypy out, which is told the version of Python and finds the same on every machine.
check: $(VENV)/.dev
	@$(SIDE_BY_SIDE) unit $(if $(filter no,$(TYPES)),,types) lint contracts

# mypy takes half a minute of one core: the tests need not wait for it.
test: $(VENV)/.dev
	@$(SIDE_BY_SIDE) types lint contracts all-tests

.PHONY: all-tests
all-tests: $(COMPILED) $(if $(CI)$(BROWSER),browser)
	$(PYTEST) -n $(WORKERS) $(call and_again)

$(COMPILED):
	@$(BIN)/python -m compileall -q edgen
	@$(PYTEST) --collect-only -qq >/dev/null || true
	@mkdir -p $(@D) && touch $@

.PHONY: without-domain
without-domain: $(VENV)/.dev
	@$(BIN)/python .ci/without-domain $(if $(AGAIN),--again) $(DOMAINS)

.PHONY: browser
browser:
	@sh .ci/setup-browser

.PHONY: fresh
fresh:
	@bash .ci/fresh-machine $(MACHINE)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev
	$(BIN)/lint-imports

unit: $(VENV)/.dev $(COMPILED)
	$(PYTEST) -n $$(($(CORES) + 1)) -m unit $(call and_again)

.PHONY: test-real
test-real: $(VENV)/.dev $(VENV)/.local
	export EDGEN_REAL=1; $(PYTEST) -n 2 tests/real $(call and_again)

.PHONY: test-cluster
test-cluster: $(VENV)/.dev $(VENV)/.cluster
	export EDGEN_CLUSTER=1; $(BIN)/python -m pytest -q -p no:xdist tests/cluster $(call and_again)

.PHONY: test-long
test-long: export EDGEN_LONG := 1
test-long: $(VENV)/.dev
	$(PYTEST) -n $(WORKERS) -m long $(call and_again)

.PHONY: slowest
slowest: $(VENV)/.dev
	$(PYTEST) -n $(CORES) -p tests.cpu_times

bench: $(VENV)/.dev
	$(BIN)/python -m bench

# The development set-up holds the core one.
$(VENV)/.core: $(LOCKS)
	@if [ -e $(VENV)/.dev ]; then $(MAKE) --no-print-directory $(VENV)/.dev; else sh .ci/setup core; fi
	@touch $@

# The set-up takes out of the environment what its lock does not name: so it comes first.
$(VENV)/.local $(VENV)/.cluster: $(VENV)/.%: $(VENV)/.core requirements-%.txt .ci/setup-extra
	@sh .ci/setup-extra $*
	@touch $@

$(VENV)/.dev: $(LOCKS)
	@sh .ci/setup dev
	@touch $@

lock:
	uv lock
	uv export --quiet --frozen --no-dev --extra analysis --group build --no-emit-project --no-header -o requirements.txt
	uv export --quiet --frozen --all-groups --no-emit-project --no-header -o requirements-dev.txt

clean:
	rm -rf site $(VENV) .venv-rl .mypy_cache .ruff_cache .pytest_cache .hypothesis

docs: $(VENV)/.dev
	$(BIN)/python -m tests.schemas
	$(BIN)/python -m tests.commands_page
	$(BIN)/python -m tests.options_table
	$(BIN)/python -m tests.signatures
	$(BIN)/python -m tests.measures_page
	$(BIN)/python -m tests.export.test_docs
	$(BIN)/python -m tests.readme
	$(BIN)/python -m tests.notebook_page
	$(BIN)/python docs/picture.py

docs-site: $(VENV)/.dev
	$(BIN)/python -m sphinx -W --keep-going -q docs site

.PHONY: proof
proof: .venv-rl/.done $(VENV)/.local
	@rm -rf outputs/improve
	@$(BIN)/python examples/improve/improve.py --dpo --trainer .venv-rl/bin/python -o outputs/improve

.PHONY: test-rl
test-rl: .venv-rl/.done $(VENV)/.local
	.venv-rl/bin/python -m pytest -q tests/rl $(call and_again,.venv-rl/bin/python)

.venv-rl/.done: .ci/setup-rl .ci/make-venv requirements.txt requirements-rl.txt pyproject.toml
	@sh .ci/setup-rl
	@touch $@
