# `make demo` prints a comparison, `make quick` checks a change in about a minute, `make test` runs the whole suite.
# All targets install into .venv: the library (core), the development tools without torch (dev), torch and HTA (full).
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# What is never imported need not be compiled; what is, is compiled once.
INSTALL := $(PIP) install -q --no-compile
PYTEST := $(BIN)/python -m pytest
# Two processes more than processors: some tests wait, for a browser or for time to pass.
PARALLEL := -n $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 2))) --maxprocesses 8 --dist worksteal
QUICK := -m "not (browser or hta or slow or torch or traces)"
# The tests start some hundred processes, each of which would compile the library anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo quick test thorough sanitize fuzz fuzz-guided kills traces lint release bench samples tables schemas screenshots plotly clean frameworks docs outputs

demo: .venv/core
	$(BIN)/tracediff compare sample_traces/ensemble/loop sample_traces/ensemble/vmap

# Lint, and the tests that need neither torch, HTA, Chromium nor the real traces; the last line counts the deselected tests.
quick: lint
	$(PYTEST) $(PARALLEL) $(QUICK) --durations 5 --durations-min 2

# The whole suite, on all cores. Tests whose requirements are missing are skipped.
test: .venv/full
	$(PYTEST) $(PARALLEL)

# The callbacks in trainings by transformers and Lightning, which it installs (190 MB).
frameworks: .venv/full
	$(INSTALL) -c constraints.txt --group frameworks
	$(PYTEST) -m frameworks

# The whole suite with five times as many examples per property test, and the tests of reading without the native reader.
thorough: .venv/full
	$(PYTEST) $(PARALLEL) --hypothesis-profile=thorough
	TRACEDIFF_NATIVE=0 $(PYTEST) $(PARALLEL) tests/ingest

# The native reader with the compiler's checks of memory and of undefined behaviour, over its tests and mutated traces; what limits
# the memory of databases, which it does not read, counts that of the checks.
SANITIZED := build/sanitized
sanitize: .venv/full
	mkdir -p $(SANITIZED)
	$(CC) -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -shared -fPIC \
	  -I$$($(BIN)/python -c "import sysconfig; print(sysconfig.get_paths()['include'])") native/scanner.c -o $(SANITIZED)/tracediff_native.abi3.so
	LD_PRELOAD=$$($(CC) -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc PYTHONPATH=$(SANITIZED) \
	  $(PYTEST) -p no:cacheprovider tests/ingest tests/fuzz -k "not database"

# Kill every command that writes 150 times at random moments, and check what it leaves; takes an hour on two cores.
kills: .venv/full
	$(BIN)/python tests/kills.py

# Spoiled inputs for SECONDS seconds, from SEED on: each must be answered or refused in one line (docs/security.md).
SECONDS ?= 600
SEED ?= 0
fuzz: .venv/full
	cd tests && ../.venv/bin/python -m fuzz --seconds $(SECONDS) --seed $(SEED)

# The same for one TARGET, with inputs chosen by the lines of code that they reach.
TARGET ?= trace
fuzz-guided: .venv/full
	$(INSTALL) atheris
	cd tests && ../.venv/bin/python -m fuzz.guided $(TARGET) -max_total_time=$(SECONDS)

# Download the published traces of other projects that the tests read to tests/data.
traces:
	$(PYTHON) tests/fetch_traces.py

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check -q .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Build what a release publishes, and check it in new environments outside the checkout; publishes nothing (CONTRIBUTING.md).
release: .venv/dev
	$(BIN)/python .ci/release.py

# Build the documentation as a site, build/site/index.html; a warning is an error.
docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# Run the commands in the pages of the documentation, and write what they print into the pages.
outputs: .venv/docs
	$(BIN)/python docs/site/outputs.py

bench: .venv/full
	$(INSTALL) -c constraints.txt --group bench
	$(BIN)/python benchmarks/bench.py --hta-runs 2 --write

# Collect the sample traces again; takes minutes, because of torch.compile.
samples: .venv/full
	$(BIN)/tracediff collect --workload vit --size tiny --variant eager --variant compile --repeats 2 --active 4 --overwrite -o sample_traces/vit
	$(BIN)/tracediff collect --workload graph-breaks --size tiny --variant eager --variant compile --repeats 2 --active 4 --overwrite -o sample_traces/graph-breaks
	$(BIN)/tracediff collect --workload ensemble --size tiny --variant loop --variant vmap --repeats 2 --active 4 --overwrite -o sample_traces/ensemble

tables: .venv/full
	$(BIN)/python benchmarks/tables.py --size tiny --out docs/workload-results.md

# Write the JSON schemas in docs/reference from the types.
schemas: .venv/dev
	$(BIN)/python docs/site/json_schema.py docs/reference

# Take screenshots of all charts and the report, light and dark, wide and narrow; needs Chromium.
screenshots: .venv/dev
	$(BIN)/python docs/images/make.py

# Build the part of plotly.js that pages contain, with its licences; after a change of plotly's version in constraints.txt. Needs npm.
plotly:
	cd .ci/plotly && npm ci --ignore-scripts --no-audit --no-fund && node build.js

clean:
	rm -rf .venv .venv-wheel dist build/site benchmarks/out

.venv/core: pyproject.toml constraints.txt $(wildcard native/*.[ch] native/pyproject.toml)
	$(PYTHON) -m venv .venv
	$(INSTALL) --upgrade "pip>=25.1"
	$(INSTALL) -c constraints.txt -e .
	$(INSTALL) ./native 2>/dev/null || echo "Without a C compiler, traces are read in Python."
	touch $@

.venv/dev: .venv/core
	$(INSTALL) -c constraints.txt --group dev
	touch $@

.venv/docs: .venv/dev
	$(INSTALL) -c constraints.txt --group docs
	touch $@

.venv/full: .venv/dev
	$(INSTALL) -c constraints.txt -e ".[collect,hta,onnx,scale]"
	touch $@
