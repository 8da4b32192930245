# One way to do each chore. Every target sets up what it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: install demo test check format bench bench-serving clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@# The user store is tested against a real Redis; without one those tests are skipped with the reason.
	@command -v redis-server >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	  && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server >/dev/null; } || true
	@touch $(STAMP)

demo: install
	$(BIN)/pathdex demo

test: install
	$(BIN)/python -m pytest

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: install
	$(BIN)/python -m benchmarks

bench-serving: install
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[ann,plot,server]'
	@# hnswlib is compiled here; where that fails, the benchmark says so and goes on without it.
	-$(BIN)/pip install --quiet --constraint constraints.txt hnswlib
	$(BIN)/python -m benchmarks serving

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache
