.PHONY: help setup test test-all test-oldest test-adapters check format soak bench clean

help:  ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## Make .venv with everything that tests and checks need
	@./setup.sh dev

# tests start hundreds of programs, and each would compile the package for itself
unexport PYTHONDONTWRITEBYTECODE

# three at a time, since many wait for worker processes; files stay whole, since their tests share a search, and in the order of tests/conftest.py;
# a process of pytest that dies ends the run: another one would begin its file anew, and die of it
PYTEST = .venv/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

test: setup  ## Run the tests
	$(PYTEST)

test-all: setup  ## Run the tests with real starts of all programs, and all attacks on all walls
	EUREKA_TESTS_ALL=1 $(PYTEST)

test-oldest: setup  ## Run the tests of language models with the oldest openai and litellm that are supported
	.ci/oldest

test-adapters: setup  ## Make the environments of the simulators that adapters are for (some GB), and run their tests
	.ci/adapters

check: setup  ## Lint, format and types
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

format: setup  ## Let ruff mend what it can
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

soak: setup  ## Faults for a batch of 12 searches until it ends, at most an hour, and the proof that nothing came of them
	PYTHONPATH=tests .venv/bin/python tests/soak/soak.py

bench:  ## Run the benchmarks (about an hour); results go to benchmarks/results, their table is printed
	@./setup.sh dev
	@./setup.sh trainers
	.venv/bin/python -m benchmarks

clean:  ## Remove .venv, caches and build products; runs/ stays
	rm -rf .venv build dist .pytest_cache .ruff_cache .mypy_cache .setup.lock
