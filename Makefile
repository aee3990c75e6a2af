# make run   install everything, then curate, train and evaluate the embedded default
# make test  install everything, then the tests
# make env   install everything into .venv      make lint  ruff and mypy      make lock  resolve the pins anew

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.complete

.PHONY: run test env lint lock
run: $(STAMP)
	$(BIN)/ulorl run

test: $(STAMP)
	$(BIN)/python -m pytest

env: $(STAMP)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lock:
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install --quiet --upgrade pip
	$(VENV)-lock/bin/python scripts/lock.py
	rm -rf $(VENV)-lock

$(STAMP): requirements/cpu.lock pyproject.toml scripts/install.py
	$(PYTHON) scripts/install.py $(VENV)
	touch $(STAMP)
