"""Held-out accuracy of the embedded model: `python -m model_service.embedded.evaluate`.

Exact match by field on documents that training never saw, decoded greedily and without any constraint, so that the figure is
the model's own.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from model_service.embedded.documents import FORM, KINDS
from model_service.embedded.tasks import Exercise, exercises
from model_service.embedded.train import prompt_of

WEIGHTS = Path(__file__).parent / "weights"
BATCH = 64
MAX_NEW_TOKENS = 160


@dataclass(frozen=True)
class Score:
    """Fields right and asked, by kind of exercise; and how many answers were right as a whole."""

    right: Counter[str]
    asked: Counter[str]
    whole: int
    exercises: int

    def accuracy(self, *kinds: str) -> float:
        """Share of right fields over some kinds of exercise."""
        return sum(self.right[kind] for kind in kinds) / sum(self.asked[kind] for kind in kinds)


def answers(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, batch: Sequence[Exercise]) -> list[str]:
    """Greedy completions, one an exercise."""
    inputs = tokenizer([prompt_of(e, tokenizer) for e in batch], return_tensors="pt", padding=True, add_special_tokens=False)
    with torch.inference_mode():
        output = model.generate(
            input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], max_new_tokens=MAX_NEW_TOKENS, do_sample=False
        )
    return [str(text) for text in tokenizer.batch_decode(output[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)]


def fields_of(answer: str) -> dict[str, Any]:
    """The object in an answer, or in the tool call that it is; empty when it is neither."""
    try:
        value = json.loads(answer.removeprefix("<tool_call>").removesuffix("</tool_call>"))
    except ValueError:
        return {}
    value = value.get("arguments", value) if isinstance(value, dict) else {}
    return value if isinstance(value, dict) else {}


def _same(found: object, expected: object) -> bool:
    return type(found) is type(expected) and found == expected


def evaluate(weights: Path, count: int, seed: int) -> Score:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(weights, padding_side="left")
    model = LlamaForCausalLM.from_pretrained(weights, dtype=torch.float32).eval()
    held_out = list(islice(exercises(seed, held_out=True), count))
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    whole = 0
    for start in range(0, count, BATCH):
        batch = held_out[start : start + BATCH]
        for exercise, answer in zip(batch, answers(model, tokenizer, batch), strict=True):
            found = fields_of(answer)
            asked[exercise.kind] += len(exercise.expected)
            right[exercise.kind] += sum(_same(found.get(name, ...), value) for name, value in exercise.expected.items())
            whole += found == exercise.expected
    return Score(right, asked, whole, count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--count", type=int, default=512, help="held-out exercises")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write the figures there")
    given = parser.parse_args()
    score = evaluate(given.weights, given.count, given.seed)
    domain = [kind.name for kind in KINDS]
    for kind in (*domain, FORM.name):
        print(f"{kind:10} {score.accuracy(kind):6.1%} of {score.asked[kind]:5} fields")
    accuracy = score.accuracy(*domain)
    print(f"{'domain':10} {accuracy:6.1%} of {sum(score.asked[kind] for kind in domain):5} fields (all but forms of made-up words)")
    print(f"{score.whole / score.exercises:.1%} of {given.count} answers are right as a whole")
    if given.json:
        by_kind = {kind: score.accuracy(kind) for kind in (*domain, FORM.name)}
        figures = {"accuracy": accuracy, "by_kind": by_kind, "exercises": given.count, "seed": given.seed}
        given.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
