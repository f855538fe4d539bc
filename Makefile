# Two commands do everything on a fresh machine with Python 3.11+ and make: `make run` and `make test`.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
# In a terminal uv shows how far it is; elsewhere it would list a hundred packages.
QUIET := $(shell test -t 2 || echo --quiet)
INSTALL := $(UV) pip install $(QUIET) --compile-bytecode --python $(BIN)/python
REVIEWS := .ddpk8s/volumes/data/reviews

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: $(VENV)/.installed-examples $(REVIEWS)/train.jsonl ## train a classifier on real Chinese reviews with two CPU processes
	@$(BIN)/ddpk8s run k8s/examples/reviews.yaml

test: $(VENV)/.installed-dev ## all tests
	@$(BIN)/python -m pytest

check: $(VENV)/.installed-dev ## lint, format, types, import directions, file length
	@$(BIN)/python tests/check.py

fix: $(VENV)/.installed-dev ## format, mend what the linter can, write the README's file tree
	@$(BIN)/ruff check --fix --quiet; $(BIN)/ruff format --quiet
	@$(BIN)/python -m ddpk8s.spec.reference docs/reference; $(BIN)/python -m ddpk8s.fabric.reference docs/reference
	@$(BIN)/python scripts/tree.py

bench: $(VENV)/.installed-dev $(REVIEWS)/train.jsonl ## measure speed as ratios in one run
	@$(BIN)/python -m benchmarks

chaos: $(VENV)/.installed-dev ## 200 random faults against real agents, ten against the real trainer, all seeded
	@$(BIN)/python -m tests.chaos

lock: $(UV) ## resolve the dependencies again and pin them by hash
	@scripts/lock

clean: ## forget the environment (not the data and runs under .ddpk8s)
	@rm -rf $(VENV)

$(REVIEWS)/train.jsonl: examples/prepare_reviews.py | $(VENV)/.installed-examples
	@$(BIN)/python examples/prepare_reviews.py --output $(REVIEWS)

# The environment: pip brings uv, uv brings the rest by hash, then this project itself.
$(UV): requirements/uv.txt
	@echo "making $(VENV) with $$($(PYTHON) --version)" >&2
	@$(PYTHON) -c 'import sys; sys.exit("ddpk8s needs Python 3.11 or newer: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@touch $@

$(VENV)/.installed-%: requirements/%.lock pyproject.toml | $(UV)
	@echo "installing requirements/$*.lock (torch alone is some GB the first time)" >&2
	@$(INSTALL) --require-hashes -r requirements/$*.lock
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: help run test check fix bench chaos lock clean
.SECONDARY:
