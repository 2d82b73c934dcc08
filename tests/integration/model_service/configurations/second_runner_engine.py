"""A whole engine on vLLM's second model runner, whose kernels are interpreted; a process of its own, with a path and an environment that
its children inherit. It jumps as its first argument says, and prints the tokens of its answers, and how many were forced, as JSON; with a
socket's name as its second, those of each of the `FATES` of a broadcaster there, and how many frames its worker has mapped for them."""

from __future__ import annotations

import json
import sys

from grammar_service.spec import GrammarKind, GrammarSpec
from tests.integration.model_service.masks.mask_requests import await_masks
from tests.integration.model_service.running_broadcaster import running_broadcaster
from tests.integration.model_service.running_engine import RunningEngine, running_engine

FIELDS = {"first_name": {"type": "string"}, "age": {"type": "integer"}}
SCHEMA = {"type": "object", "properties": FIELDS, "required": list(FIELDS), "additionalProperties": False}
SENTENCE = "The answer is (yes|no), and nothing else\\."
SPECS = (GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(SCHEMA)), GrammarSpec(GrammarKind.REGEX, SENTENCE))
QUESTION = "Extract first_name, age as JSON.\n\nMeet Ada Young. Age: 36."
FATES = ("not there", "there", "late", "killed")
Answers = list[tuple[list[int], int]]


def answers(engine: RunningEngine) -> Answers:
    """At once, so that a segment of one stands beside a single token of another."""
    asked = [(QUESTION, spec, {"max_tokens": 32}) for spec in SPECS]
    penalized = (QUESTION, SPECS[0], {"max_tokens": 32, "frequency_penalty": 0.5})
    free = (QUESTION, None, {"max_tokens": 8})
    return [(list(answer.tokens), answer.forced) for answer in engine.ask_all([*asked, penalized, free])]


def fates(engine: RunningEngine, name: str) -> list[tuple[Answers, int]]:
    def seen() -> tuple[Answers, int]:
        before = engine.mask_counts()[0]["mapped"]
        return answers(engine), engine.mask_counts()[0]["mapped"] - before

    nobody = seen()
    with running_broadcaster(name) as broadcaster:
        await_masks(engine)
        there = seen()
        broadcaster.stop()
        late = seen()
        broadcaster.kill()
        return [nobody, there, late, seen()]


if __name__ == "__main__":
    jumps, *sockets = sys.argv[1:]
    with running_engine(max_num_seqs=4, jump_forward=jumps, mask_socket=sockets[0] if sockets else None) as engine:
        found = fates(engine, sockets[0]) if sockets else answers(engine)
    # Last of all: vLLM may log to the same stream while the engine ends.
    print(json.dumps(found))
