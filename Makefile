PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
APEXRANK_DATA ?= $(wildcard $(CURDIR)/../shared/data)
export APEXRANK_DATA

.PHONY: help demo extras test test-all test-minimum test-newest release-check test-processors test-busy explore lint unit bench nightly fuzz coverage mutation audit docs site-check linkcheck clean

help:
	@echo "make demo   install into $(VENV) and run 'apexrank demo'"
	@echo "make test   install with the test tools, then lint, types and the quick tests (minutes)"
	@echo "make test-all   the same with the long tests: kills, soak, browser, experiments, more examples"
	@echo "make test-minimum, make test-newest  all tests with the oldest supported and the newest released dependencies"
	@echo "make release-check  build wheel and sdist, install the wheel elsewhere and run the README there"
	@echo "make test-processors  all tests as other processors, thread counts and library versions compute (an hour)"
	@echo "make test-busy  all tests beside a busy loop on every core"
	@echo "make explore    all tests, with newly drawn examples for the properties"
	@echo "make extras also install PyTorch, XGBoost and the tools of the night, which make test then tests with"
	@echo "make nightly    what takes too long for make test: fuzz, coverage, mutation, audit, site, processors (hours)"
	@echo "make fuzz       200,000 generated inputs for the readers (minutes)"
	@echo "make coverage   lines of src that the tests run; fails below 95 % (a quarter of an hour)"
	@echo "make mutation   share of planted faults that the tests find in kernels, atoms and objectives (half an hour)"
	@echo "make audit      known vulnerabilities of the pinned dependencies (needs the network)"
	@echo "make bench  benchmarks against peers in one run, printed as ratios (minutes)"
	@echo "make docs   the site with its gallery, in docs/_build/html; any warning fails (minutes)"
	@echo "make site-check  build the site, then check accessibility and search in Chromium"
	@echo "make linkcheck  the same pages, links to other sites tried (needs the network)"
	@echo "make clean  remove $(VENV) and everything generated"

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

test: $(VENV)/test lint unit

test-all: $(VENV)/test lint
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell *.md docs examples benchmarks src papers
	$(BIN)/python -m tests.words

unit: $(VENV)/test
	$(BIN)/python -m pytest -n 2 -m "not slow" --hypothesis-profile=quick

# the whole suite under each setting; "make test-processors SETTINGS='haswell plain' TIER='-m \"not slow\"'" is quicker
test-processors: $(VENV)/test .venv-oldest
	$(BIN)/python -m tests.processors $(SETTINGS) -- $(TIER)

.venv-oldest: pyproject.toml papers/pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv $@
	$@/bin/python -m pip --quiet --disable-pip-version-check install --constraint tests/oldest.txt --editable ".[test]" --editable papers
	@touch $@

test-minimum: .venv-oldest
	.venv-oldest/bin/python -m pytest -n 2 $(TIER)

.venv-newest: pyproject.toml papers/pyproject.toml
	$(PYTHON) -m venv $@
	$@/bin/python -m pip --quiet --disable-pip-version-check install --upgrade --editable ".[test]" --editable papers
	@touch $@

test-newest: .venv-newest
	.venv-newest/bin/python -m pytest -n 2 $(TIER)

release-check: $(VENV)/test
	$(BIN)/python -m tests.release

# two loops that never rest beside the tests: no test may depend on time
test-busy: $(VENV)/test
	@$(BIN)/python -c "while True: pass" & one=$$!; $(BIN)/python -c "while True: pass" & two=$$!; \
	trap "kill $$one $$two" EXIT; $(BIN)/python -m pytest -n 2 $(TIER)

explore: $(VENV)/test
	$(BIN)/python -m pytest -n 2 --hypothesis-profile=explore

nightly: fuzz coverage mutation audit site-check test-processors

fuzz: extras
	$(BIN)/python -m tests.fuzz --inputs 200000

# compiled kernels run no line of Python: make mutation runs them as plain Python, and says which lines no test reaches
coverage: extras
	rm -f .coverage .coverage.*
	$(BIN)/python -m pytest -n 2 --cov --cov-report= --cov-fail-under=0
	$(BIN)/python -m coverage report

mutation: extras
	$(BIN)/python -m tests.mutation --sample 500 --seed 12
	$(BIN)/python -m tests.metamorphic.mutants

audit: extras
	$(BIN)/python -m tests.audit

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

# needs Chromium
site-check: $(VENV)/test docs
	$(BIN)/python -m tests.site

linkcheck: .venv-docs
	.venv-docs/bin/python -m sphinx -E -n -q -D plot_gallery=0 -b linkcheck docs docs/_build/linkcheck

clean:
	rm -rf docs/_build docs/api/generated docs/auto_examples
	rm -rf $(VENV) .venv-oldest .venv-newest .venv-docs dist demo figures artefacts benchmarks/results .pytest_cache .mypy_cache .ruff_cache .hypothesis
