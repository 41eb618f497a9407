# make demo   set up, make the quickstart data set with the simulator, show one conversation
# make test   lint, types, import contracts, all tests
# make test-rl  the data on real trainers (TRL, CPU torch), in an environment of its own: .venv-rl
# make bench  print the benchmarks
# make docs   the outputs in README.md, the JSON Schemas of jobs and spaces, docs/job.md, as they are now
# make lock   after a change of dependencies: uv.lock and the two files exported from it (needs uv)
#
# uv is used where it is installed, else venv and pip; both install what the committed lock names.

VENV := .venv
BIN := $(VENV)/bin
LOCKS := pyproject.toml uv.lock requirements.txt requirements-dev.txt
.DEFAULT_GOAL := demo
.PHONY: demo test bench docs lock clean

demo: $(VENV)/.core
	@$(BIN)/edgen generate jobs/quickstart.yaml --show 1

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if [ -n "$$CI" ]; then sh .ci/setup-browser; fi
	$(BIN)/python -m pytest -q

bench: $(VENV)/.dev
	$(BIN)/python -m bench

# The development set-up holds the core one.
$(VENV)/.core: $(LOCKS)
	@if [ -e $(VENV)/.dev ]; then $(MAKE) --no-print-directory $(VENV)/.dev; else sh .ci/setup core; fi
	@touch $@

$(VENV)/.dev: $(LOCKS)
	@sh .ci/setup dev
	@touch $@

lock:
	uv lock
	uv export --quiet --frozen --no-dev --group build --no-emit-project --no-header -o requirements.txt
	uv export --quiet --frozen --all-groups --no-emit-project --no-header -o requirements-dev.txt

clean:
	rm -rf $(VENV) .venv-rl .mypy_cache .ruff_cache .pytest_cache .hypothesis

docs: $(VENV)/.dev
	$(BIN)/python -m tests.schemas
	$(BIN)/python -m tests.readme

.PHONY: test-rl
test-rl: .venv-rl/.done
	.venv-rl/bin/python -m pytest -q tests/rl

.venv-rl/.done: .ci/setup-rl requirements.txt requirements-rl.txt pyproject.toml
	@sh .ci/setup-rl
	@touch $@
