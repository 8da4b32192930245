# One way to do each chore. Every target sets up what it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# `make test-wheel` installs the wheel here, and removes it afterwards.
WHEEL_VENV := build/wheel-venv
# `make bench-peers` installs the libraries for comparison here, since they need other versions of the packages.
PEERS_VENV := build/peers-venv

.PHONY: install demo test test-all test-wheel check format docs docs-serve wheel bench bench-serving bench-peers clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,docs]'
	@# Stores and streams are tested against real brokers; without one those tests are skipped with the reason.
	@for broker in redis-server nats-server; do \
	  command -v $$broker >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	  && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$broker >/dev/null; } || true; \
	done
	@# Compiles what training and queries need; the demo and the tests then load it from numba's cache.
	-$(BIN)/pathdex warmup
	@touch $(STAMP)

demo: install
	$(BIN)/pathdex demo

test: install
	$(BIN)/python -m pytest -m "not slow"

test-all: install
	$(BIN)/python -m pytest

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The theme repeats at every build that it is maintained until May 2027.
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

docs-serve: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

wheel: install
	rm -rf dist
	$(BIN)/python -m build --no-isolation

# The demo from the wheel in an empty environment. torch comes first, so that pip takes the pinned build.
test-wheel: wheel
	rm -rf $(WHEEL_VENV)
	$(PYTHON) -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/pip install --quiet --constraint constraints.txt torch
	$(WHEEL_VENV)/bin/pip install --quiet --constraint constraints.txt dist/*.whl
	cd $(WHEEL_VENV) && bin/pathdex demo --users 600 --items 200
	rm -rf $(WHEEL_VENV)

bench: install
	$(BIN)/python -m benchmarks

bench-serving: install
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[ann,plot,server]'
	@# hnswlib is compiled here; where that fails, the benchmark says so and goes on without it.
	-$(BIN)/pip install --quiet --constraint constraints.txt hnswlib
	$(BIN)/python -m benchmarks serving

# torch comes first, so that pip takes the pinned build; the second command keeps it.
bench-peers: install
	@test -x $(PEERS_VENV)/bin/python || $(PYTHON) -m venv $(PEERS_VENV)
	$(PEERS_VENV)/bin/pip install --quiet --constraint constraints.txt torch
	$(PEERS_VENV)/bin/pip install --quiet $(shell grep '^torch==' constraints.txt) 'rectools[torch]==0.19.0'
	$(BIN)/python -m benchmarks peers

clean:
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache
