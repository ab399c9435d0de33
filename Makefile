# Each target first creates or updates the environment .venv if necessary.
PYTHON ?= python3
# `nproc` would return OMP_NUM_THREADS, if set.
CORES ?= $(shell env -u OMP_NUM_THREADS nproc 2>/dev/null || echo 2)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Options: make reproduce DATA=surrogate, or MIRROR=folder.
# On Linux, jobs are forks of one process that has imported the libraries. On other systems, each job starts a process.
EXECUTOR ?= $(if $(filter Linux,$(shell uname)),forks,local)
SNAKEMAKE := $(BIN)/snakemake --cores $(CORES) --executor $(EXECUTOR) $(if $(DATA),--config 'data={source: $(DATA)}')
export PRIVATE_CONSENSUS_MIRROR := $(or $(MIRROR),$(PRIVATE_CONSENSUS_MIRROR))

.PHONY: reproduce smoke figure comparison publish check-report site compare test lint docs benchmark lock release clean

reproduce: $(READY)
	$(SNAKEMAKE)

smoke: $(READY)
	$(SNAKEMAKE) --configfile config/smoke.yaml

# One figure at the scale of the papers, e.g. make figure FIGURE=showkatbakhsh_fig2.
figure: $(READY)
	$(SNAKEMAKE) -- $(FIGURE)

# Compare methods at equal true privacy; config/papers/comparison.yaml lists them.
comparison: $(READY)
	$(SNAKEMAKE) --configfile config/comparison.yaml -- comparison
	@echo "The comparison: results/paper/comparison/comparison.md"

# Publish a full run on real data to results/reference.
publish: $(READY)
	$(SNAKEMAKE) -- publish

# Check the report of a run: sizes and accessibility of each page; texts, marks and colours of each figure.
check-report: $(READY)
	$(BIN)/python -m tests.report.checking $(or $(RUN),results/paper)

# List the numbers of a run that changed beyond their Monte-Carlo error, or with EXACT=1 all changed numbers. Fail if there are any.
compare: $(READY)
	$(BIN)/private-consensus compare $(or $(RUN),results/paper) $(if $(EXACT),--exact)

# One process per core. The tests of a file run in one process, because they share fixtures; tests/conftest.py orders the files.
test: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(CORES) --dist loadfile --no-loadscope-reorder

# Build wheel and source distribution in dist.
release: $(READY)
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	$(BIN)/python -c 'from setuptools.build_meta import build_sdist; build_sdist("dist")' >/dev/null
	rm -rf build
	@ls -1 dist

benchmark: $(READY)
	PYTHONPATH=. $(BIN)/python -m benchmarks.growth all

# Build the documentation in results/docs, and run the examples. Sphinx and its extensions are installed from
# requirements-docs.txt.
DOCS_READY := $(VENV)/.docs
docs: $(DOCS_READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -q --fail-on-warning --keep-going -b html docs results/docs
	@echo "The documentation: results/docs/index.html"

$(DOCS_READY): $(READY) requirements-docs.txt
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements-docs.txt
	@touch $@

# Build documentation and reference report as one site. Fail if a link is dead.
site: docs
	$(BIN)/python -m private_consensus.report.static results/docs results/site
	@echo "The site: results/site/index.html"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/ty check --python $(VENV)
	$(BIN)/snakefmt --check Snakefile workflow/Snakefile workflow/rules
	$(BIN)/snakemake --lint
	$(BIN)/python -m tests.tools.readability --check

LOCK = $(BIN)/uv pip compile --quiet --universal --generate-hashes --fork-strategy fewest --python-version 3.11 \
  --no-header --no-annotate pyproject.toml
lock: $(READY)
	$(BIN)/python -m pip install --quiet uv
	$(LOCK) --extra dev -o requirements.txt
	$(LOCK) --extra docs --constraint requirements.txt -o requirements-docs.txt

clean:
	rm -rf results/paper results/smoke .snakemake

$(READY): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  "make: Python %d.%d is too old: 3.11 or newer is required, e.g. make PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --no-compile --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $@
