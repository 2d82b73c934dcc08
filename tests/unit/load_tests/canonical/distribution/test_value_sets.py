"""Sets of values for fields of documents."""

from __future__ import annotations

import json
from itertools import islice

from transformers import PreTrainedTokenizerFast

from deployments.builders import EMBEDDED_WEIGHTS
from load_tests.canonical.distribution.figures import WITH, WITHOUT
from load_tests.canonical.distribution.value_sets import questions

TOKENIZER = PreTrainedTokenizerFast.from_pretrained(EMBEDDED_WEIGHTS)


def test_one_kind_of_set_holds_what_the_document_says() -> None:
    for question in islice(questions(4, 1, TOKENIZER), 20):
        prompt = TOKENIZER.decode(question.context)
        values = {kind: [json.loads(text.strip()[:-1]) for text in texts] for kind, texts in question.sets.items()}
        assert all(len(set(found)) == 4 for found in values.values())
        assert values[WITH][0] in prompt
        assert values[WITH][0] not in values[WITHOUT]
        assert values[WITH][1:] == values[WITHOUT][:3]


def test_context_and_text_are_an_answer_so_far() -> None:
    for question in islice(questions(3, 2, TOKENIZER), 20):
        context = TOKENIZER.decode(question.context)
        assert context.endswith(f'"{question.field}":')
        for text in question.sets[WITH]:
            together = TOKENIZER.encode(context + text, add_special_tokens=False)
            assert together == [*question.context, *TOKENIZER.encode(text, add_special_tokens=False)]


def test_no_text_begins_with_another_one() -> None:
    for question in islice(questions(4, 3, TOKENIZER), 20):
        texts = {text for found in question.sets.values() for text in found}
        assert not any(one != other and other.startswith(one) for one in texts for other in texts)
