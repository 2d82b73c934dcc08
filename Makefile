# The same commands on a laptop and in CI. Each one sets up .venv first; that takes no time when it is there.
BIN := .venv/bin
CODE := $(wildcard deployments grammar_service model_service router load_tests examples tests)

.PHONY: serve test clients playground lint types bench faults soak audit setup clean

serve: setup  ## start everything, show one extraction, serve until Ctrl-C (MODEL=name or folder; CONFIG=file: settings; ONCE=1: stop after it)
	@exec $(BIN)/maskcast serve $(MODEL) $(if $(CONFIG),--config '$(CONFIG)') $(if $(filter-out 0 no false,$(ONCE)),--once)

test: setup  ## the whole test suite; TESTS='tests/unit -k spec' chooses
	@scripts/test $(TESTS)

clients: setup  ## sets up clients that others have written, with which `make test` asks its service
	@scripts/clients

playground: setup  ## sets up Node packages and Chromium, with which `make test` tries the playground
	@scripts/playground --setup

lint: setup  ## style and the import contracts
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check --quiet $(CODE)
	@$(BIN)/lint-imports --no-logo

types: setup  ## mypy --strict, tests included
	@$(BIN)/mypy $(CODE)

bench: setup  ## the benchmarks whose results are older than the code they measure (ALL=1: all); refreshes the tables in docs/benchmarks
	@$(BIN)/python -m model_service.embedded.evaluate
	@$(BIN)/python -m load_tests.reporting.bench $(if $(filter-out 0 no false,$(ALL)),--all)

faults: setup  ## kill and suspend each kind of process of a cluster of two nodes under load; a quarter of an hour
	@$(BIN)/python -m load_tests.faults --json load_tests/results/faults.json
	@$(BIN)/python -m load_tests.reporting.tables

soak: setup  ## half an hour of traffic over 2,000 schemas, and whether memory, files or anything else grows; MINUTES and REQUESTS choose
	@$(BIN)/python -m load_tests.soak --minutes $(or $(MINUTES),30) --requests $(or $(REQUESTS),20000) --json load_tests/results/soak.json
	@$(BIN)/python -m load_tests.reporting.tables

audit: setup  ## licences, bills of materials of both locks, and known vulnerabilities where their database can be reached
	@$(BIN)/python scripts/audit

setup:
	@scripts/setup

clean:  ## the environment and all caches
	rm -rf .venv tests/clients/.venv tests/clients/node/node_modules playground/node_modules build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
