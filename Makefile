.PHONY: help setup test check format bench clean

help:  ## This list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "%-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## Make .venv with everything that tests and checks need
	@./setup.sh dev

# two at a time: many wait for worker processes; files stay whole, since their tests share a search, and in the order of tests/conftest.py
test: setup  ## Run all tests
	.venv/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

check: setup  ## Lint, format and types
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

format: setup  ## Let ruff mend what it can
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

bench:  ## Run the benchmarks (about an hour); results go to benchmarks/results, their table is printed
	@./setup.sh dev
	@./setup.sh bench
	.venv/bin/python -m benchmarks

clean:  ## Remove .venv, caches and build products; runs/ stays
	rm -rf .venv build dist .pytest_cache .ruff_cache .mypy_cache .setup.lock
