"""A whole engine on vLLM's second model runner, whose kernels are interpreted; a process of its own, with a path and an environment that
its children inherit. It prints the tokens of its answers, and how many were forced, as JSON."""

from __future__ import annotations

import json

from grammar_service.spec import GrammarKind, GrammarSpec
from tests.integration.model_service.running_engine import RunningEngine, running_engine

FIELDS = {"first_name": {"type": "string"}, "age": {"type": "integer"}}
SCHEMA = {"type": "object", "properties": FIELDS, "required": list(FIELDS), "additionalProperties": False}
SENTENCE = "The answer is (yes|no), and nothing else\\."
SPECS = (GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(SCHEMA)), GrammarSpec(GrammarKind.REGEX, SENTENCE))
QUESTION = "Extract first_name, age as JSON.\n\nMeet Ada Young. Age: 36."


def answers(engine: RunningEngine) -> list[tuple[list[int], int]]:
    """At once, so that a segment of one stands beside a single token of another."""
    asked = [(QUESTION, spec, {"max_tokens": 32}) for spec in SPECS]
    penalized = (QUESTION, SPECS[0], {"max_tokens": 32, "frequency_penalty": 0.5})
    free = (QUESTION, None, {"max_tokens": 8})
    return [(list(answer.tokens), answer.forced) for answer in engine.ask_all([*asked, penalized, free])]


if __name__ == "__main__":
    with running_engine(max_num_seqs=4) as engine:
        found = answers(engine)
    # Last of all: vLLM may log to the same stream while the engine ends.
    print(json.dumps(found))
