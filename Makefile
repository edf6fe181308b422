# Each target creates the virtual environment it needs; nothing has to be installed by hand.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python

.PHONY: demo test method test-ecosystem test-engines test-oldest matrix dist bench evidence pictures torture docs clean

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip
	$(RUN) -m pip install --quiet --editable '.[test,lint]'
	touch $@

$(VENV)/bench-installed: $(VENV)/installed
	$(RUN) -m pip install --quiet --editable '.[bench]'
	touch $@

demo: $(VENV)/installed
	$(RUN) -m discrim compare breast_cancer --store demo.sqlite --html demo.html

test: $(VENV)/installed
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m codespell_lib discrim docs tests README.md CONTRIBUTING.md CHANGELOG.md
	$(RUN) -m mypy
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(RUN) -m pytest -n auto --dist worksteal

# Run every law of one method, the test of its definition and the check of its documentation: make method NAME=fisher-lda
method: $(VENV)/installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(RUN) -m pytest -n auto --dist worksteal --method $(NAME) tests

$(VENV)/ecosystem-installed: $(VENV)/installed
	$(RUN) -m pip install --quiet --editable '.[ecosystem-test]'
	touch $@

# Tests of the import from and export to other tools: ONNX, AnnData, skops and Dask.
test-ecosystem: $(VENV)/ecosystem-installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(RUN) -m pytest -n auto \
		tests/test_onnx.py tests/test_anndata.py tests/test_persistence.py tests/engines/test_dask_tables.py

# Tests of Dask, Spark (needs Java 17) and Spark Connect; a separate target, because a Spark session starts slowly.
test-engines: $(VENV)/installed
	$(RUN) -m pip install --quiet --editable '.[dask,spark]' 'pyspark[connect]'
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 DISCRIM_SPARK=1 $(RUN) -m pytest tests/engines
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 DISCRIM_SPARK=connect $(RUN) -m pytest tests/engines/test_spark.py

# Measure the main table (about ten minutes, with nothing else running) and write docs/performance.md; ROW=cv measures one row.
bench: $(VENV)/bench-installed
	$(RUN) -m benchmarks $(ROW) --into docs/performance.md

$(VENV)/docs-installed: $(VENV)/installed
	$(RUN) -m pip install --quiet --editable '.[docs]'
	touch $@

# Build the site in docs/_build/html; a warning is an error.
docs: $(VENV)/docs-installed
	OMP_NUM_THREADS=1 $(RUN) -m sphinx -W --keep-going -b html docs docs/_build/html

# Run stress tests for about twenty minutes.
torture: $(VENV)/installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(RUN) -m torture --into docs/reliability.md

.venv-oldest/installed: pyproject.toml oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --upgrade pip
	.venv-oldest/bin/python -m pip install --quiet --only-binary :all: --editable '.[test]' --constraint oldest.txt
	touch $@

# Run the tests (all, or those in OLDEST_TESTS) with the oldest versions that pyproject.toml declares.
OLDEST_TESTS ?= tests
test-oldest: .venv-oldest/installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-oldest/bin/python -m pytest -n auto --dist worksteal $(OLDEST_TESTS)

# Run the tests on every installed Python from 3.11 on with the newest versions, and once with the oldest versions.
matrix:
	for python in python3.11 python3.12 python3.13 python3.14; do \
		! $$python --version >/dev/null 2>&1 || $(MAKE) test VENV=.venv-$$python PYTHON=$$python || exit 1; done
	$(MAKE) test-oldest

# Build a wheel and an sdist in build/dist, and install them in clean environments with each extra alone.
dist:
	PYTHON=$(PYTHON) .ci/dist

$(VENV)/study-installed: $(VENV)/installed
	$(RUN) -m pip install --quiet --editable '.[study]'
	touch $@

# Compute the figures of the docs from scratch: under three hours on two free cores; PAGE=study computes those of one page.
evidence: $(VENV)/study-installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(RUN) examples/evidence.py $(if $(PAGE),--only $(PAGE))
	$(if $(PAGE),,$(RUN) examples/wide_study.py)
	$(if $(PAGE),,$(RUN) examples/judged_rows_study.py)

pictures: $(VENV)/installed
	mkdir -p build
	$(RUN) -m discrim compare digits --splits 20 --html build/digits.html --store build/digits.sqlite
	$(RUN) examples/report_pictures.py build/digits.html docs/images

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
