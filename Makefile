PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
APEXRANK_DATA ?= $(wildcard $(CURDIR)/../shared/data)
export APEXRANK_DATA

.PHONY: help demo test lint unit bench clean

help:
	@echo "make demo   install into $(VENV) and run 'apexrank demo'"
	@echo "make test   install with the test tools, then lint, types, tests, doctests and the README's commands"
	@echo "make bench  benchmarks against peers in one run, printed as ratios (minutes)"
	@echo "make clean  remove $(VENV) and everything generated"

$(VENV)/base: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint constraints.txt --editable ".[plot]"
	@touch $@

$(VENV)/test: $(VENV)/base
	$(PIP) install --constraint constraints.txt --editable ".[test]"
	@touch $@

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

clean:
	rm -rf $(VENV) demo figures benchmarks/results .pytest_cache .mypy_cache .ruff_cache .hypothesis
