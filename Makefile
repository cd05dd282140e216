# Everything a contributor runs. Needs Python 3.11 or newer with pip; set-up happens once, in .venv.
# `make demo` and `make test` are the two to remember; `make help` lists the rest.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
ORRERY_DATA ?= ../shared/data
PYTEST_WORKERS ?= 2
QUICK := base engine hardware models numerics kernels network execution training serving reasoning fleet rl catalog planner
FUZZ_SECONDS ?= 600
FLOORS ?= numerics hardware models kernels network execution training serving reasoning fleet rl catalog planner scenario
READERS ?= $(filter-out __init__,$(basename $(notdir $(wildcard tests/fuzz/fuzzed/*.py))))
export ORRERY_DATA
# Several processes work at once; BLAS threads of each would wait for the others.
export OPENBLAS_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help demo web test quick check unit drawn slow bench fuzz mutants release docs scorecard papers fit wheel compile clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 20

demo: $(VENV)/.ready ## set up, then plan Llama-3.1-70B on up to eight H100s
	$(BIN)/orrery plan --model llama-3.1-70b --device h100-sxm --max-devices 8 \
		--trace chat --slo ttft:1000 --slo tpot:50

web: $(VENV)/.ready ## set up, then serve the pages to this machine's browser
	$(BIN)/orrery web --open

test: check unit ## set up, then every check and test of the default run

check: $(VENV)/.ready-dev ## format, lint, types and the import contract
	$(BIN)/ruff format --check --quiet src tests tools
	$(BIN)/ruff check --quiet src tests tools
	$(BIN)/lint-imports --no-logo
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --threads 2

# Tests and what they start keep their bytecode where Python puts it, whatever the shell says: else every worker and every
# command under test compiles the house anew, and where it lay elsewhere, all packages that pip has compiled as well.
unit quick drawn slow bench: export PYTHONDONTWRITEBYTECODE :=
unit quick drawn slow bench: export PYTHONPYCACHEPREFIX :=

# What failed beside other work is run again alone, and both outcomes are shown: limits of time fail on a busy machine.
# Only then are assertions rewritten to show their values: on a fresh checkout that takes each worker ten seconds.
unit: $(VENV)/.ready-dev ## the tests of the default run
	$(BIN)/python tools/compile/build.py
	$(BIN)/python -m compileall -q -j $(PYTEST_WORKERS) src tests tools
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --assert=plain --durations=10 || \
		{ echo "Some tests failed: each is run once more, alone." >&2; \
		$(BIN)/python -m pytest -n 0 --last-failed --last-failed-no-failures none -rA; }

quick: $(VENV)/.ready-dev ## a minute: lint, the oracles and properties of every formula, 200 rows of the scorecard
	$(BIN)/ruff check --quiet src tests tools
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/compile/build.py
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) $(addprefix tests/,$(QUICK)) tests/evidence/test_sampled_rows.py

drawn: $(VENV)/.ready-dev ## the properties of the default run, on examples drawn anew
	HYPOTHESIS_PROFILE=random $(BIN)/python -m pytest -n $(PYTEST_WORKERS) -m "hypothesis and not slow and not bench"

slow: $(VENV)/.ready-dev ## tests that need minutes or further packages
	$(BIN)/python -m pytest -m slow

bench: $(VENV)/.ready-dev ## speed: predictions, estimates and plans a second
	$(BIN)/python -m pytest -m bench -s

# Guided by coverage where Atheris is installed (pip install atheris), else by what readers answer.
fuzz: $(VENV)/.ready-dev ## give every reader of users' files broken ones, FUZZ_SECONDS (600) each; READERS picks some
	for reader in $(READERS); do $(BIN)/python tests/fuzz/run.py $$reader --seconds $(FUZZ_SECONDS) || exit 1; done

mutants: $(VENV)/.ready-dev ## small wrong changes of every floor, one at a time: do its tests see them? FLOORS picks some
	$(BIN)/python tools/mutants/run.py --floors $(FLOORS)

release: test drawn slow bench wheel mutants fuzz ## every check there is, hours long

docs: $(VENV)/.ready-dev ## draw and write the generated pages again
	$(BIN)/python tools/house.py
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/picture.py
	$(BIN)/python tools/gallery.py

scorecard: $(VENV)/.ready-dev ## score every measured table under ORRERY_DATA; writes docs/scorecard.md
	$(BIN)/python tools/scorecard.py --data $(ORRERY_DATA)
	$(BIN)/python tools/scorecard_sample.py --data $(ORRERY_DATA)

papers: $(VENV)/.ready-dev ## run every claim of every paper again; writes its part of the scorecard and docs/papers.md
	$(BIN)/orrery reproduce --all --write

fit: $(VENV)/.ready-fit ## fit every constant again from the tables under ORRERY_DATA
	for script in tools/fit/*.py; do $(BIN)/python $$script --data $(ORRERY_DATA) || exit 1; done

wheel: $(VENV)/.ready-dev ## build the wheel, show what is in it, and try it on every Python that is here
	sh tools/checks/wheel.sh

compile: $(VENV)/.ready-dev ## compile the engine rooms again after an edit
	$(BIN)/python tools/compile/build.py

clean: ## remove what was built, and the environment
	rm -rf $(VENV) dist build src/orrery/*/_compiled.* .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "orrery needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: pyproject.toml src/orrery_papers/pyproject.toml hatch_build.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bits,emulate,papers,report,web]' --editable src/orrery_papers
	@touch $@

# Dependency groups came with pip 25.1, so the environment first gets a pip that knows them.
$(VENV)/.ready-dev: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev
	@touch $@

$(VENV)/.ready-fit: $(VENV)/.ready-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group fit
	@touch $@
