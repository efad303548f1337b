PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
APEXRANK_DATA ?= $(wildcard $(CURDIR)/../shared/data)
export APEXRANK_DATA

.PHONY: help demo test lint unit test-all extras docs bench nightly clean

help:
	@echo "make demo      install into $(VENV) and run 'apexrank demo'"
	@echo "make test      lint, types and the quick tests (4 minutes on two cores)"
	@echo "make test-all  lint, types and all tests (20 minutes)"
	@echo "make docs      the site with its gallery, in docs/_build/html; any warning fails (minutes)"
	@echo "make bench     benchmarks against peers in one run, printed as ratios (minutes)"
	@echo "make nightly   fuzzing, coverage, mutation, other processors and versions (hours); STEPS='fuzz links' runs some"
	@echo "make clean     remove $(VENV) and everything generated"

$(VENV)/base: pyproject.toml papers/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint constraints.txt --editable ".[plot,report]" --editable papers
	@touch $@

$(VENV)/test: $(VENV)/base
	$(PIP) install --constraint constraints.txt --editable ".[test]"
	@touch $@

# XGBoost's own dependencies are a CUDA library of hundreds of megabytes, which training on a CPU does not need
extras: $(VENV)/test
	$(PIP) install --constraint constraints.txt torch
	$(PIP) install --constraint constraints.txt --no-deps xgboost
	$(PIP) install --constraint constraints.txt --editable ".[nightly]"

demo: $(VENV)/base
	$(BIN)/apexrank demo
	@echo "apexrank is $(BIN)/apexrank; 'source $(BIN)/activate' puts it on your PATH"

# mypy has one thread: the tests begin beside it
test: $(VENV)/test
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=line lint unit

lint: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell *.md docs examples benchmarks src papers
	$(BIN)/python -m tests.words
	$(BIN)/mypy

unit: $(VENV)/test
	$(BIN)/python -m pytest -n 2 -m "not slow" --hypothesis-profile=quick

test-all: $(VENV)/test lint
	$(BIN)/python -m pytest -n 2

nightly: extras
	$(BIN)/python -m tests.nightly $(STEPS)

bench: $(VENV)/test
	$(BIN)/python -m benchmarks

# an environment of its own: an import that the extra lacks fails here as it does for whoever installs the extra alone
.venv-docs: pyproject.toml papers/pyproject.toml constraints.txt
	$(PYTHON) -m venv $@
	$@/bin/python -m pip --quiet --disable-pip-version-check install --constraint constraints.txt --editable ".[docs]" --editable papers
	@touch $@

# pages of names that are gone would be left behind
docs: .venv-docs
	rm -rf docs/api/generated
	.venv-docs/bin/python -m sphinx -E -W --keep-going -n -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

clean:
	rm -rf docs/_build docs/api/generated docs/auto_examples
	rm -rf $(VENV) .venv-* dist demo figures artefacts benchmarks/results .pytest_cache .mypy_cache .ruff_cache .hypothesis
