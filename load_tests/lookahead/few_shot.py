"""Prompts that begin with examples, as the paper's do: they are longer than a block, so that engines find whole blocks again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice

from transformers import PreTrainedTokenizerFast

from load_tests.lookahead.arms import Task
from load_tests.lookahead.concept_sets import ConceptSet, concept_sets
from load_tests.lookahead.models import prompt_of

SEED = 98
LENGTHS = range(20, 81)
"""Tokens of examples: from less than a block of 32 to more than two."""
STRIDE = 7
"""Between one prompt's length and the next one's: few prompts have all phases of a block."""


def behind_examples(drawn: Sequence[ConceptSet], tokenizer: PreTrainedTokenizerFast) -> list[Task]:
    """All prompts begin with as much of the same examples as their length takes."""
    examples = tuple(islice(_examples(tokenizer), LENGTHS[-1]))
    lengths = islice(cycle(LENGTHS), 0, None, STRIDE)
    return [Task(one, tokenizer, examples[:length]) for one, length in zip(drawn, lengths, strict=False)]


def _examples(tokenizer: PreTrainedTokenizerFast) -> Iterator[int]:
    """Tokens, endless."""
    for example in concept_sets(SEED, held_out=False):
        text = f"{prompt_of(example.concepts)}{example.sentence}{tokenizer.eos_token}"
        yield from tokenizer.encode(text, add_special_tokens=False)
