"""What each package and room exports is decided, not grown: a name that is added or goes is a change of the interface."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("deployments", "grammar_service", "load_tests", "model_service", "router")
EXPORTED = {
    "deployments.api.checking": {"AnswerChecker", "Check"},
    "deployments.api.confidence": {"FIELD", "FieldConfidence", "add_field_confidence", "take_field_confidence"},
    "deployments.fitting": {"Fit", "ModelCard", "fit", "read_card"},
    "deployments.client": {"AsyncStructuredClient", "Generation", "StructuredClient"},
    "grammar_service.artifacts.cache": {"Found", "MemoryCache", "RedisCache", "TieredCache"},
    "grammar_service.backends": {
        *("Backend", "CompiledGrammar", "CompiledPayload", "Fault", "Matcher"),
        *("backend_named", "faults_as_written", "faults_in_the_way", "loading_backends", "select_backend", "select_stopgap"),
    },
    "grammar_service.conformance": {"ConformanceReport", "Row", "run_conformance"},
    "grammar_service.registry": {
        *("MAX_ID_LENGTH", "GrammarEntry", "GrammarNames", "RegistryStore", "ResolvedAs", "Room", "Stored", "is_valid_id"),
    },
    "grammar_service.relaxation": {"LEFT_OUT", "Relax", "Relaxed", "relaxed"},
    "grammar_service.sandbox": {"QUICK", "Sandbox", "SandboxSettings"},
    "grammar_service.segments": {"MOST_TAIL", "NOTHING", "Segment", "Segmenter"},
    "model_service.lookahead": {"Account", "Machine", "Method", "Parameters", "Rejection", "Stop", "machine_for"},
    "model_service.lookahead.rewards": {"Aside", "Gathered", "Reward", "RewardSpec", "Scoring", "Sources", "built", "parsed"},
}


def exported(init: Path) -> set[str]:
    """`__all__` of a package; a package without one holds a docstring and nothing else."""
    tree = ast.parse(init.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{init} does not say what its room is for"
    lists = [node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"]
    assert len(tree.body) == 1 or len(lists) == 1, f"{init} does more than to re-export"
    return set(ast.literal_eval(lists[0])) if lists else set()


def test_rooms_export_what_was_decided() -> None:
    found = {
        ".".join(init.parent.relative_to(ROOT).parts): exported(init)
        for package in PACKAGES
        for init in sorted((ROOT / package).rglob("__init__.py"))
    }
    assert {name: names for name, names in found.items() if names} == EXPORTED


def test_every_folder_of_code_is_a_room() -> None:
    folders = {path.parent for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []
    assert [str(folder) for folder in sorted(folders) if len(list(folder.glob("*.py"))) > 15] == []
