# The front door. `make help` lists what there is; every target sets itself up.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
RUN := $(VENV)/.ready-to-run
READY := $(VENV)/.ready
# Tests start many processes; where the environment forbids it, each would compile all of the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test quick test-connectors test-console test-cluster matrix container kafka check unit soak bench record figures bench-compare docs clean lock

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

$(RUN): requirements-run.lock pyproject.toml
	@echo "setting up $(VENV) from requirements-run.lock (first time: less than a minute)"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --no-compile --require-hashes -r requirements-run.lock
	@$(PY) -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(READY): $(RUN) requirements.lock
	@echo "adding to it from requirements.lock what tests and documentation need (first time: about two minutes)"
	@$(PY) -m pip install --quiet --require-hashes -r requirements.lock
	@touch $@

setup: $(READY) ## make the virtual environment from the locked dependencies

demo: $(RUN) ## the main job: a live traffic speed map on Spark; CONSOLE=1 ends with it in the browser
	@$(PY) examples/traffic/demo.py $(if $(CONSOLE),--console) $(ARGS)

test: check unit ## everything that must hold: check, then all tests

quick: $(READY) ## ruff, and a cross-section of the tests without Spark: one minute
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(PY) -m pytest -n 2 --dist loadscope --max-worker-restart 0 --quick $(WITHOUT_SPARK)

check: $(READY) ## ruff, mypy (strict on src), import-linter, spelling
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy --strict tests/typing
	$(VENV)/bin/lint-imports
	$(VENV)/bin/codespell *.md docs src examples benchmarks

WITHOUT_SPARK = --ignore=tests/spark --ignore=tests/connectors --ignore=tests/browser --ignore=tests/cluster

unit: $(READY)
	$(PY) -m pytest -n 2 --dist loadscope --no-loadscope-reorder --max-worker-restart 0 --durations=10 $(WITHOUT_SPARK)
	$(PY) -m pytest -n 2 --dist loadgroup --max-worker-restart 0 --durations=10 tests/spark

test-connectors: $(READY) ## tests against a real Kafka and a real S3 server, fetched once; what is missing is told as not run
	$(PY) -m pytest -n 0 -rs tests/connectors

matrix: $(READY) ## the wheel in empty environments: each Python here, oldest and newest dependencies, a notebook, pyright
	$(PY) -m pip install --quiet uv
	$(PY) tests/release/matrix.py

container: $(READY) ## an image with a notebook, Spark and Caesura (needs docker)
	rm -rf dist && $(PY) -m pip wheel --quiet --no-deps --no-build-isolation -w dist .
	$(VENV)/bin/jupytext --quiet --to ipynb -o container/first_steps.ipynb examples/notebooks/first_steps.py
	docker build -t caesura-notebook -f container/Dockerfile .

test-cluster: $(READY) ## a standalone cluster and a Spark Connect server on this machine; what is missing is told as not run
	$(PY) -m pytest -n 0 -rs tests/cluster

test-console: $(READY) ## the console in a real Chromium, fetched once; screenshots go to build/console
	@$(PY) -c "import playwright, axe_playwright_python" 2>/dev/null || $(PY) -m pip install --quiet -r tests/browser/requirements.txt
	$(PY) -m pytest -n 0 -rs tests/browser

kafka: $(READY) ## a Kafka broker of one node at localhost:9092 (PORT=...), until Ctrl-C
	@$(PY) tests/connectors/broker/local_kafka.py

DEPTH ?= 4
LONG = CAESURA_SEARCH=1 CAESURA_DEPTH=$(DEPTH) CAESURA_CONTRACT_PLANS=2000 CAESURA_CONTRACT_TICKS=400 CAESURA_KILLS=20

soak: $(READY) ## the long forms: searches DEPTH times as deep, 2,000 drawn plans and SQL queries, drawn faults, a day of events
	@status=0; \
	$(LONG) $(PY) -m pytest -n 2 --dist loadscope --no-loadscope-reorder tests/contracts tests/feedback tests/laws tests/runtime \
	  tests/windows tests/udm tests/qre tests/fixpoint tests/consistency tests/api tests/io tests/testing tests/sql tests/security || status=1; \
	$(LONG) $(PY) -m pytest -n 2 --dist loadgroup tests/spark || status=1; \
	exit $$status

bench: $(READY) ## a benchmark: make bench NAME=core ARGS="--json"
	@$(PY) -m benchmarks $(NAME) $(ARGS)

record: $(READY) ## keep medians of benchmarks: make record MACHINE=2-cores ROUNDS=3 CALLS="core 'nexmark --memory'"
	@$(PY) -m benchmarks record --machine $(MACHINE) --rounds $(or $(ROUNDS),3) $(CALLS)

figures: $(READY) ## write the tables and plots of README and docs anew, from what was kept
	@$(PY) -m benchmarks figures

bench-compare: $(READY) ## the core cases in turns with another commit, and fail over 5 %: make bench-compare BASE=main
	@$(PY) -m benchmarks compare $(BASE) $(ARGS)

docs: $(READY) ## the documentation as HTML, in build/docs
	$(PY) -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "open build/docs/index.html"

LOCK = pip compile -q pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

lock: $(READY) ## resolve the dependencies again and write requirements.lock, and requirements-run.lock: what running takes
	$(PY) -m pip install --quiet uv
	$(PY) -m uv $(LOCK) --all-extras -o requirements.lock
	$(PY) -m uv $(LOCK) --extra spark --extra cli --extra console -c requirements.lock -o requirements-run.lock tests/release/build.in

clean: ## remove the environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
