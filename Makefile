PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
APEXRANK_DATA ?= $(wildcard $(CURDIR)/../shared/data)
export APEXRANK_DATA

.PHONY: help demo extras test lint unit bench docs linkcheck clean

help:
	@echo "make demo   install into $(VENV) and run 'apexrank demo'"
	@echo "make test   install with the test tools, then lint, types, tests, doctests and the README's commands"
	@echo "make extras also install PyTorch and XGBoost, which make test then tests with"
	@echo "make bench  benchmarks against peers in one run, printed as ratios (minutes)"
	@echo "make docs   the site with its gallery, in docs/_build/html; any warning fails (minutes)"
	@echo "make linkcheck  the same pages, links to other sites tried (needs the network)"
	@echo "make clean  remove $(VENV) and everything generated"

$(VENV)/base: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint constraints.txt --editable ".[plot,report]"
	@touch $@

$(VENV)/test: $(VENV)/base
	$(PIP) install --constraint constraints.txt --editable ".[test]"
	@touch $@

$(VENV)/docs: $(VENV)/base
	$(PIP) install --constraint constraints.txt --editable ".[docs]"
	@touch $@

# XGBoost's own dependencies are a CUDA library of hundreds of megabytes, which training on a CPU does not need
extras: $(VENV)/test
	$(PIP) install --constraint constraints.txt torch
	$(PIP) install --constraint constraints.txt --no-deps xgboost

demo: $(VENV)/base
	$(BIN)/apexrank demo

test: $(VENV)/test lint unit

lint: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: $(VENV)/test
	$(BIN)/python -m pytest -n 2

bench: $(VENV)/test
	$(BIN)/python -m benchmarks

# pages of names that are gone would be left behind
docs: $(VENV)/docs
	rm -rf docs/api/generated
	$(BIN)/python -m sphinx -E -W --keep-going -n -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

linkcheck: $(VENV)/docs
	$(BIN)/python -m sphinx -E -n -q -D plot_gallery=0 -b linkcheck docs docs/_build/linkcheck

clean:
	rm -rf docs/_build docs/api/generated docs/auto_examples
	rm -rf $(VENV) demo figures artefacts benchmarks/results .pytest_cache .mypy_cache .ruff_cache .hypothesis
