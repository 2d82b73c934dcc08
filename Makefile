# The same commands on a laptop and in CI. Each one sets up .venv first; that takes no time when it is there.
BIN := .venv/bin
CODE := $(wildcard deployments grammar_service model_service router load_tests examples tests)

.PHONY: serve test lint types bench load faults soak audit setup clean

serve: setup  ## start everything, show one extraction, serve until Ctrl-C (MODEL=name or folder; CONFIG=file: settings; ONCE=1: stop after it)
	@exec $(BIN)/maskcast serve $(MODEL) $(if $(CONFIG),--config '$(CONFIG)') $(if $(filter-out 0 no false,$(ONCE)),--once)

test: setup  ## the whole test suite; TESTS='tests/unit -k spec' chooses
	@scripts/test $(TESTS)

lint: setup  ## style and the import contracts
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check --quiet $(CODE)
	@$(BIN)/lint-imports --no-logo

types: setup  ## mypy --strict, tests included
	@$(BIN)/mypy $(CODE)

bench: setup  ## every benchmark there is; refreshes the tables in docs/benchmarks
	@$(BIN)/python -m model_service.embedded.evaluate
	@$(BIN)/python -m load_tests.grammar load_tests/corpus/schemas --ray --json load_tests/results/grammar.json
	@$(BIN)/python -m load_tests.grammar.hits --json load_tests/results/grammar_hits.json
	@$(BIN)/python -m load_tests.redis_trouble --json load_tests/results/redis_trouble.json
	@$(BIN)/python -m load_tests.abuse --json load_tests/results/abuse.json
	@$(BIN)/python -m load_tests.event_loop --json load_tests/results/event_loop.json
	@$(BIN)/python -m load_tests.tenants --json load_tests/results/tenants.json
	@$(BIN)/python -m load_tests.front_door --json load_tests/results/front_door.json
	@$(BIN)/python -m load_tests.real_model --json load_tests/results/real_model.json
	@$(BIN)/python -m load_tests.front_door.handle --json load_tests/results/front_door_handle.json
	@$(BIN)/python -m load_tests.front_door.vllm_client --json load_tests/results/vllm_client.json
	@$(BIN)/python -m load_tests.front_door.pieces --json load_tests/results/front_door_pieces.json
	@$(BIN)/python -m load_tests.jump_forward --tekken --json load_tests/results/jump_forward.json
	@$(BIN)/python -m load_tests.jump_forward.overlap --json load_tests/results/overlap.json
	@$(BIN)/python -m load_tests.masks.sizes --json load_tests/results/mask_bytes.json
	@$(BIN)/python -m load_tests.guards --json load_tests/results/guards.json
	@$(BIN)/python -m load_tests.lookahead.published --json load_tests/results/lookahead_published.json
	@$(BIN)/python -m load_tests.lookahead --json load_tests/results/lookahead.json
	@$(BIN)/python -m load_tests.canonical --json load_tests/results/canonical.json
	@$(BIN)/python -m load_tests.canonical.distribution --json load_tests/results/canonical_distribution.json
	@$(BIN)/python -m load_tests.canonical.served --json load_tests/results/canonical_served.json
	@$(BIN)/python -m load_tests.automata --json load_tests/results/automata.json
	@$(BIN)/python -m load_tests.routing.overhead --json load_tests/results/router_overhead.json
	@$(BIN)/maskcast simulate --json load_tests/results/simulation.json --plot load_tests/results/simulation.png
	@$(BIN)/python -m load_tests.routing --json load_tests/results/routing.json
	@$(BIN)/python -m load_tests.routing.faults --json load_tests/results/routing_faults.json
	@$(BIN)/python -m load_tests.traces.cost --json load_tests/results/traces.json
	@$(BIN)/python -m load_tests.masks.path --steps 5 --json load_tests/results/mask_path.json
	@$(BIN)/python -m load_tests.masks.engines --json load_tests/results/mask_engines.json
	@$(BIN)/python -m load_tests.reporting.tables

load: setup  ## mixed traffic with open arrivals; the report with charts goes to the folder OUT
	@$(BIN)/python -m load_tests.load $(or $(OUT),build/load)

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
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
