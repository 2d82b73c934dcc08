"""Chat exercises over synthetic documents: extract fields as JSON, or call the tool that records the document.

Exercises are split by a digest of their text, so that what is held out is never trained on, whatever the seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from random import Random

from model_service.embedded.documents import FORM, KINDS, Document, Value, draw_document
from model_service.embedded.vocabulary import FORM_FIELDS

HELD_OUT_SHARE = 16  # one exercise in sixteen is never trained on
TOOL_SHARE = 0.12
ABSENT_SHARE = 0.08

_EXTRACT = (
    "Extract {fields} as JSON.",
    "Extract {fields} as JSON from this text.",
    "Return a JSON object with {fields}.",
    "Give me {fields} as JSON.",
    "Find {fields} and answer in JSON.",
)
_CALL = ("Record this.", "Save this for me.", "Store the following.")
_TEXT_LAST = "{instruction}\n\n{text}"
_TEXT_FIRST = "{text}\n\n{instruction}"


@dataclass(frozen=True)
class Exercise:
    """`kind` names the document's family; `expected` is the object that the answer holds; `tools` maps tool names to parameter
    names."""

    kind: str
    question: str
    answer: str
    expected: dict[str, Value | None]
    tools: dict[str, tuple[str, ...]]

    @property
    def held_out(self) -> bool:
        digest = blake2b(f"{self.question}\0{sorted(self.tools)}".encode(), digest_size=4).digest()
        return int.from_bytes(digest, "big") % HELD_OUT_SHARE == 0


def _ask(instruction: str, text: str, rng: Random) -> str:
    layout = _TEXT_LAST if rng.random() < 0.8 else _TEXT_FIRST
    return layout.format(instruction=instruction, text=text)


def _extraction(document: Document, rng: Random) -> Exercise:
    names = rng.sample(sorted(document.facts), rng.randint(1, min(5, len(document.facts))))
    expected: dict[str, Value | None] = {name: document.facts[name] for name in names}
    if rng.random() < ABSENT_SHARE:
        absent = [name for name in FORM_FIELDS if name not in document.facts]
        expected[rng.choice(absent)] = rng.choice(("", None))
    instruction = rng.choice(_EXTRACT).format(fields=", ".join(expected))
    return Exercise(document.kind.name, _ask(instruction, document.text, rng), json.dumps(expected), expected, {})


def _tool_call(document: Document, rng: Random) -> Exercise:
    names = tuple(document.facts)[: rng.randint(2, 4)]
    tools = {document.kind.tool: names}
    for kind in rng.sample(KINDS, rng.randint(1, 3)):
        tools.setdefault(kind.tool, tuple(field.name for field in kind.fields[:3]))
    order = rng.sample(sorted(tools), len(tools))
    expected: dict[str, Value | None] = {name: document.facts[name] for name in names}
    call = json.dumps({"name": document.kind.tool, "arguments": expected})
    question = _ask(rng.choice(_CALL), document.text, rng)
    return Exercise(document.kind.name, question, f"<tool_call>\n{call}\n</tool_call>", expected, {name: tools[name] for name in order})


def draw_exercise(rng: Random) -> Exercise:
    document = draw_document(rng)
    return _tool_call(document, rng) if document.kind is not FORM and rng.random() < TOOL_SHARE else _extraction(document, rng)


def exercises(seed: int, *, held_out: bool) -> Iterator[Exercise]:
    """An endless stream from one side of the split."""
    rng = Random(seed)
    while True:
        exercise = draw_exercise(rng)
        if exercise.held_out == held_out:
            yield exercise
