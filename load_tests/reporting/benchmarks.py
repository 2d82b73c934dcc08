"""Every benchmark: the command that writes its result, and the code that it measures."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

GRAMMARS = ("grammar_service",)
ENGINES = ("grammar_service", "model_service", ":(exclude)model_service/engine/frontend")
_SERVING = "access answers api app.py builders.py constraints grammars replicas single.py telemetry tracing".split()
SERVICE = (*(f"deployments/{name}" for name in _SERVING), *GRAMMARS, "model_service", "router")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """`command` writes a report to the file of `--json`. `paths` are those that it measures besides its own folder of `load_tests`, for
    git. `separate`: `make bench` leaves it out, because it takes half an hour or needs a checkout of another repository."""

    command: str
    paths: tuple[str, ...]
    separate: bool = False

    @property
    def argv(self) -> list[str]:
        tool = Path(sys.executable).parent / "maskcast"
        named = {"python": sys.executable, "maskcast": str(tool)}
        first, *others = shlex.split(self.command)
        return [named[first], *others]

    @property
    def measured_paths(self) -> list[str]:
        own = [f"load_tests/{word.split('.')[1]}" for word in shlex.split(self.command) if word.startswith("load_tests.")]
        return [*self.paths, *own]


BENCHMARKS: Mapping[str, Benchmark] = {
    "real_model": Benchmark("python -m load_tests.real_model", SERVICE),
    "confidence": Benchmark("python -m load_tests.real_model.confidence", SERVICE),
    "drafts": Benchmark("python -m load_tests.drafts", SERVICE, separate=True),
    "first_answers": Benchmark("python -m load_tests.first_answers schemastore", SERVICE, separate=True),
    "front_door": Benchmark("python -m load_tests.front_door", SERVICE),
    "front_door_handle": Benchmark("python -m load_tests.front_door.handle", SERVICE),
    "vllm_client": Benchmark("python -m load_tests.front_door.vllm_client", SERVICE),
    "grammar": Benchmark("python -m load_tests.grammar load_tests/corpus/schemas --ray", GRAMMARS),
    "tenants": Benchmark("python -m load_tests.tenants", SERVICE),
    "overlap": Benchmark("python -m load_tests.overlap", ENGINES),
    "lookahead": Benchmark("python -m load_tests.lookahead", ENGINES),
    "canonical": Benchmark("python -m load_tests.canonical", GRAMMARS),
    "router_overhead": Benchmark("python -m load_tests.routing.overhead", ("router",)),
    "simulation": Benchmark("maskcast simulate --plot load_tests/results/simulation.png", ("router",)),
    "routing": Benchmark("python -m load_tests.routing", SERVICE),
    "mask_path": Benchmark("python -m load_tests.masks.path --steps 5", ENGINES),
    "ablation": Benchmark("maskcast simulate --ablate", ("router",), separate=True),
    "conformance": Benchmark("maskcast grammar conformance", GRAMMARS, separate=True),
    "conformance_schemastore": Benchmark("maskcast grammar conformance", GRAMMARS, separate=True),
    "tokenizers": Benchmark("python -m load_tests.tokenizers", ENGINES, separate=True),
    "faults": Benchmark("python -m load_tests.faults", SERVICE, separate=True),
    "soak": Benchmark("python -m load_tests.soak", SERVICE, separate=True),
}
"""By their results' names, in the order of running: what a user meets first."""
