# The verbs of this repository. Each sets up what it needs; all are safe to repeat.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done

# Options for pytest. Two processes; the tests of one file stay together, so that they share their databases. A process that died
# is not replaced: what it leaves to a new one can wait for ever, and its death is a failure in any case.
# One process: make test PYTEST_ARGS=      Only the quick ones: make test PYTEST_ARGS='-m "not slow"'
PYTEST_ARGS ?= -n 2 --dist loadfile --max-worker-restart=0

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup demo report airports failover hosts sizing test check matrix bench clean pytest-command example-fastapi example-flask example-django powerloss models mutants simulate

help:
	@echo "make setup     create $(VENV) and install everything the other targets need"
	@echo "make demo      run the main job on real input and watch it survive; KEEP=1 leaves its page up"
	@echo "make report    make, attach and mail reports while workers die and the mail provider fails; count what was sent"
	@echo "make airports  import a real file of 28,000 rows for several tenants while workers die; count the rows against the file"
	@echo "make failover  kill a primary PostgreSQL under load, promote its standby, and count what was acknowledged"
	@echo "make hosts     cut a worker off from the database alone, on hosts of their own (network namespaces; root), and watch it stop"
	@echo "make sizing    count what a job costs PostgreSQL: rows, WAL, commits, bytes kept"
	@echo "make example-fastapi, make example-flask, make example-django   a shop with a worker and its page, on 127.0.0.1:8000, until Ctrl-C"
	@echo "make powerloss cut the power after every write to a SQLite store, kill its process at every one, and count what is lost; LONG=1, SEED=n"
	@echo "make models    explore the models of leases, dispatch and effects completely, with and without errors put in (spin and gcc); LONG=1"
	@echo "make mutants   put one error after the other into a copy of the package; each must be found by the tests that are named for it"
	@echo "make simulate  run the engine in simulated time from seeds, with everything that can go wrong; SEEDS=n, or SEED=n for one again"
	@echo "make test      run the whole test suite"
	@echo "make check     format, lint, types, import contracts"
	@echo "make matrix    try every route as everybody on every kind of id, and print what came of it"
	@echo "make bench     measure"
	@echo "make clean     remove $(VENV) and what tools left behind"

setup: $(STAMP)
	@:

$(STAMP): pyproject.toml
	@set -eu; \
	if ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    found=; \
	    for python in python3.13 python3.12 python3.11 python3 python; do \
	        if $$python -c 'import ensurepip, sqlite3, ssl, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	        then found=$$python; break; fi; \
	    done; \
	    if [ -z "$$found" ]; then \
	        echo "Outlast needs Python 3.11 or newer with venv, pip and sqlite3, and found none on PATH."; \
	        echo "On Debian and Ubuntu: apt-get install python3 python3-venv"; \
	        exit 1; \
	    fi; \
	    echo "setup: creating $(VENV) with $$($$found --version)"; \
	    $$found -m venv --clear $(VENV); \
	fi >&2; \
	echo "setup: installing Outlast and its tools into $(VENV)"; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --editable '.[postgres,web,demo,dev]'; \
	touch $@

demo: $(STAMP)
	@$(BIN)/outlast demo

report: $(STAMP)
	@$(BIN)/python -m examples.report.run

airports: $(STAMP)
	@$(BIN)/python -m examples.airports.run

failover: $(STAMP)
	@PYTHONPATH=tests $(BIN)/python -m rehearsals.failover

# SEEDS=n: how many. SEED=n: that one alone. FROM=n: the first. PROCESSES=n: so many at once. MUTANTS=1: whether it finds what it is for.
simulate: $(STAMP)
	@PYTHONPATH=tests $(BIN)/python -m simulate.run $(if $(SEEDS),--seeds '$(SEEDS)') $(if $(SEED),--seed '$(SEED)') \
	    $(if $(FROM),--from '$(FROM)') $(if $(PROCESSES),--processes '$(PROCESSES)') $(if $(MUTANTS),--mutants)

hosts: $(STAMP)
	@PYTHONPATH=tests $(BIN)/python -m rehearsals.hosts

sizing: $(STAMP)
	@PYTHONPATH=tests $(BIN)/python -m rehearsals.sizing

example-fastapi: $(STAMP)
	@$(BIN)/python -m examples.fastapi

example-flask: $(STAMP)
	@$(BIN)/python -m examples.flask

example-django: $(STAMP)
	@$(BIN)/python -m examples.django

powerloss: $(STAMP)
	@PYTHONPATH=tests $(BIN)/python -m powerloss.run $(if $(SEED),--seed $(SEED)) $(if $(LONG),--long)

models: $(STAMP)
	@PYTHONPATH=tests $(BIN)/python -m models.run $(if $(LONG),--long)

mutants: $(STAMP)
	@PYTHONPATH=tests $(BIN)/python -m mutants.run

test: $(STAMP)
	@$(BIN)/pytest $(PYTEST_ARGS)

check: $(STAMP)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo

# One process and no random order, so that the table is whole.
matrix: $(STAMP)
	@$(BIN)/pytest --quiet -p no:randomly tests/web/matrix --matrix

bench: $(STAMP)
	@$(BIN)/outlast bench

clean:
	@rm -rf $(VENV) .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist htmlcov
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# For scripts that must end with the status and the last line of pytest itself.
pytest-command:
	@: $(info $(BIN)/pytest $(PYTEST_ARGS))
