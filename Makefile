# The verbs that people and CI share. Nothing has to be installed by hand but Python ≥ 3.11 and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
NODE   := $(VENV)/.node
STAMP  := $(VENV)/.installed
DEBIAN := $(VENV)/.debian

.PHONY: run cluster test check bench bench-spark bench-workers conform recipes package faults simulate spark spec fuzz messages vendor lock clean

run: $(NODE)
	$(BIN)/postroad serve

# Three nodes and one gateway on a real etcd (Debian's), until Ctrl-C: make cluster ARGS="--data DIR"
cluster: $(NODE) $(DEBIAN)
	$(BIN)/python -m tools.etcd_cluster $(ARGS)

# A test that fails is tried once more and shown, three of them at most; not where chance plays no part or
# messages may be lost (docs/adr/0012).
ONE_TRY   := broker cluster config faults groups log metrics queues replication wire
TWO_TRIES := --reruns 1 --max-suite-reruns 3 --rerun-show-tracebacks $(ONE_TRY:%=--rerun-exclude-path tests/%)

# One more than two cores: much of what tests do is to wait, for a client, a JVM or a time-out.
PROCESSES := 3

test: $(STAMP) $(DEBIAN)
	$(BIN)/pytest -n $(PROCESSES) --dist worksteal $(TWO_TRIES) $(ARGS)

# Seeds of the deterministic simulation (docs/simulation.md): make simulate ARGS="--seeds 200"
simulate: $(STAMP)
	$(BIN)/python -m simulator $(ARGS)

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_sizes.py

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(ARGS)

# The data source against Spark's own Kafka connector and native scans.
bench-spark: $(STAMP) $(DEBIAN)
	$(BIN)/python -m benchmarks.spark $(ARGS)

# Background jobs by `import postroad` beside Celery, dramatiq, ARQ and taskiq.
bench-workers: $(STAMP)
	$(BIN)/python -m benchmarks.workers $(ARGS)

# The REST API held to its OpenAPI document by schemathesis: as far as it gets in half a minute.
conform: $(STAMP)
	CONFORM=1 $(BIN)/pytest -q tests/gateway/rest/test_conformance.py $(ARGS)

# The package installed from PyPI's wheels into fresh environments, on each Python from 3.11 on that is here.
package: $(STAMP)
	PACKAGE=1 $(BIN)/pytest -q tests/test_package.py $(ARGS)

# What takes long with Spark: kills, a standalone cluster, Spark Connect, the guide, the examples, the report.
spark: $(STAMP) $(DEBIAN)
	$(BIN)/pytest -m spark_slow tests/spark tests/pipelines tests/docs $(ARGS)

# The failure matrix: three nodes on a real etcd, killed, cut off and broken under load. Figures are shown at the end.
faults: $(STAMP) $(DEBIAN)
	$(BIN)/pytest -m cluster_slow tests/faults tests/backups tests/clients tests/docs tests/gateway tests/mirrors $(ARGS)

# The recipes of docs/recipes that want frameworks or servers of others; each framework in an environment of its own.
recipes: $(STAMP)
	$(BIN)/pytest -m recipe_slow tests/recipes $(ARGS)

# The TLA+ model of replication (docs/spec), checked by TLC: make spec ARGS="os-kill1 m-shrinkEarly"
spec: $(STAMP)
	$(BIN)/python -m docs.spec.run $(ARGS)

fuzz: $(STAMP)
	$(BIN)/python -m tools.fuzz $(ARGS)

# The protocol's modules, from kio's schemas. A test fails when they are not current.
messages: $(STAMP)
	$(BIN)/python -m tools.generate_messages

# The console's scripts that others wrote, from the npm registry, by the hashes in vendor.toml.
vendor: $(STAMP)
	$(BIN)/python -m tools.vendor

# Pinned versions of all that is installed here; names packages and versions only.
lock: $(STAMP)
	$(BIN)/pip install -q uv
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --extra dev --no-header --no-annotate \
		--no-emit-index-url --no-emit-find-links -o constraints.txt pyproject.toml

# What a node needs, and no more: PySpark alone has 490 MB.
$(NODE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Postroad needs Python 3.11 or newer; say which with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e .
	$(BIN)/python -m compileall -q src  # a start without bytecode takes twice as long
	touch $@

$(STAMP): $(NODE)
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

$(DEBIAN): tools/debian-packages
	bash tools/debian-packages
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
