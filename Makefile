# Two commands: `make demo` shows an answer, `make test` runs the whole suite. Everything lives in .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
SAMPLE := sample_traces/vit

.PHONY: demo test traces lint package bench samples tables schemas screenshots clean

demo: .venv/core
	$(BIN)/tracediff compare $(SAMPLE)/eager $(SAMPLE)/compile

test: .venv/dev
	$(BIN)/python -m pytest

# The published traces of other projects that the tests read, into tests/data; needs the network.
traces:
	$(PYTHON) tests/fetch_traces.py

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# A wheel in a clean environment, away from the checkout, must do what the checkout does.
package: .venv/dev
	rm -rf dist .venv-wheel
	$(BIN)/python -m build --wheel --no-isolation --outdir dist .
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt dist/*.whl
	cd $(SAMPLE) && ../../.venv-wheel/bin/tracediff compare eager compile --json - --html ../../.venv-wheel/report.html | ../../.venv-wheel/bin/python -c "import json, sys; assert json.load(sys.stdin)['step_time']['residual_us'] == 0"
	rm -rf .venv-wheel

bench: .venv/dev
	$(BIN)/python benchmarks/bench.py --hta-runs 2 --write

# The collector's own traces and tables: minutes of compiling.
samples: .venv/dev
	$(BIN)/tracediff collect --workload vit --size tiny --variant eager --variant compile --repeats 2 --active 4 --overwrite -o sample_traces/vit
	$(BIN)/tracediff collect --workload graph-breaks --size tiny --variant eager --variant compile --repeats 2 --active 4 --overwrite -o sample_traces/graph-breaks
	$(BIN)/tracediff collect --workload ensemble --size tiny --variant loop --variant vmap --repeats 2 --active 4 --overwrite -o sample_traces/ensemble

tables: .venv/dev
	$(BIN)/python benchmarks/tables.py --size tiny --out docs/workload-results.md

# Every chart and the report, light and dark, wide and narrow; needs Chromium.
screenshots: .venv/dev
	$(BIN)/python docs/images/make.py

clean:
	rm -rf .venv .venv-wheel dist benchmarks/out

.venv/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) install -q --upgrade "pip>=25.1"
	$(PIP) install -q -c constraints.txt -e .
	touch $@

.venv/dev: .venv/core
	$(PIP) install -q -c constraints.txt -e ".[collect,hta,onnx]" --group dev
	touch $@
