# Each target is all that a newcomer needs: it makes .venv first when that is missing or out of date.
PYTHON ?= python3
CORES ?= $(shell nproc 2>/dev/null || echo 2)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# make reproduce DATA=surrogate, or MIRROR=folder
# Jobs are forks of one process that has imported the libraries; elsewhere each job is a process of its own.
EXECUTOR ?= $(if $(filter Linux,$(shell uname)),forks,local)
SNAKEMAKE := $(BIN)/snakemake --cores $(CORES) --executor $(EXECUTOR) $(if $(DATA),--config 'data={source: $(DATA)}')
export PRIVATE_CONSENSUS_MIRROR := $(or $(MIRROR),$(PRIVATE_CONSENSUS_MIRROR))

.PHONY: reproduce smoke publish print check-report site comparison compare test mutants lint docs benchmark peers lock fuzz faults release clean

reproduce: $(READY)
	$(SNAKEMAKE)
	@echo "The report: results/paper/report/index.html"

# The comparison first, so that the report shows it.
smoke: $(READY)
	$(SNAKEMAKE) --prioritize comparison --configfile config/smoke.yaml -- everything comparison
	@echo "The report: results/smoke/report/index.html"

# Full paper-scale run on real data to results/reference; PARTIAL=1 lets papers be missing, and says so.
publish: $(READY)
	$(SNAKEMAKE) -- $(if $(PARTIAL),publish_partial,publish)

# Figures for a paper of one's own, as PDF without heading, 3.3 and 6.8 inches wide, to results/paper/print; FIGURE=name for one.
print: $(READY)
	$(BIN)/python -m private_consensus.reproduction.plotting.printing results/paper/figures results/paper/print $(FIGURE)

# Every private algorithm on equal terms: config/comparison.yaml, docs/comparison.md; SCALE=smoke for a small one.
comparison: $(READY)
	$(SNAKEMAKE) $(if $(SCALE),--configfile config/$(SCALE).yaml) -- comparison

# What is wrong with the report of a run: sizes, rules of accessibility on each page, texts, marks and colours of each figure.
check-report: $(READY)
	$(BIN)/python -m tests.report.checking $(or $(RUN),results/paper)

# List the numbers of a run that changed beyond their Monte-Carlo error, or with EXACT=1 all that changed; fail if any did.
compare: $(READY)
	$(BIN)/private-consensus compare $(or $(RUN),results/paper) $(if $(EXACT),--exact)

# A process a core; a file's tests stay in one process, for the sake of what they share; files in the order of tests/conftest.py.
test: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(CORES) --dist loadfile --no-loadscope-reorder

# Every algorithm broken in every way that makes sense, and correct ones: what the audit finds of each.
mutants: $(READY)
	$(BIN)/python -m tests.mutants --cores $(CORES)

# Five thousand malformed configurations, commands and files; two hundred of them are among the tests. All compiled functions
# with checked indices; the tests leave out those that take longest to compile.
fuzz: $(READY)
	FUZZ_CASES=5000 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(CORES) tests/fuzz tests/core/test_kernels.py

# What of docs/faults.yaml holds on this machine, to results/reference/faults.json; the report shows it.
faults: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.faults --cores $(CORES)

# A release, in dist: wheel, source, what they are made of with checksums and licences, and an archive of the reference results
# that a repository of research data takes as it is (RO-Crate).
release: $(READY)
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	$(BIN)/python -c 'from setuptools.build_meta import build_sdist; build_sdist("dist")' >/dev/null
	rm -rf build
	$(BIN)/python -m private_consensus.reproduction.publishing.components dist
	$(BIN)/python -m private_consensus.reproduction.publishing.crate results/reference dist/private-consensus-reference.zip
	@ls -1 dist

benchmark: $(READY)
	$(BIN)/python -m pytest benchmarks --benchmark-enable --benchmark-columns=min,median,rounds
	PYTHONPATH=. $(BIN)/python -m benchmarks.growth all

# Time of other libraries for the same results, in docs/reference/other_libraries.md. They are installed in .peers, which no other
# target uses. The table names those that cannot be installed.
peers: $(READY)
	$(BIN)/python -m benchmarks.peers.environment .peers
	.peers/bin/python -m benchmarks.peers

# Documentation in results/docs/index.html. Runs the tutorials and the gallery; Sphinx and its extensions are installed once, from
# requirements-docs.txt.
DOCS_READY := $(VENV)/.docs
docs: $(DOCS_READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -q --fail-on-warning --keep-going -b html docs results/docs
	@echo "The documentation: results/docs/index.html"

$(DOCS_READY): $(READY) requirements-docs.txt
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements-docs.txt
	@touch $@

# Documentation and reference report as one site with one search; fails if a link is dead.
site: docs
	$(BIN)/python -m private_consensus.reproduction.report.static results/docs results/site
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
	  "make: found Python %d.%d, expected 3.11 or newer; try make PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --no-compile --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $@
