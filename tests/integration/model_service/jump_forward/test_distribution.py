"""Sampling behind a segment follows the model's own probabilities, exactly as without jumping."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.spec import GrammarKind, GrammarSpec
from tests.integration.model_service.running_engine import RunningEngine

QUESTION = "Extract year as JSON. Text: a mill of unknown age."
LEFT, MIDDLE, RIGHT = '{"first": ', ', "second": ', "}"
SPEC = GrammarSpec(GrammarKind.REGEX, r'\{"first": [0-9], "second": [0-9]\}')
SAMPLES, AT_ONCE = 1280, 64
LEAST_EXPECTED = 5
SIGNIFICANCE = 0.001
TEMPERATURE = 2.0
"""The embedded model is sure of itself; flattened, every outcome is seen."""


IN_THE_PROMPT = "Extract year as JSON. Text: mills of 47, of 31, of 80, of 25, of 16, of 52, of 69, of 74 and of 93."
YEARS = GrammarSpec(GrammarKind.REGEX, r'\{"year": [0-9][0-9]\}')


@pytest.fixture(scope="module")
def exact() -> dict[str, float]:
    return _exact(QUESTION, LEFT, MIDDLE)


def _exact(question: str, left: str, middle: str) -> dict[str, float]:
    """The probability of each of the hundred answers, from the model's logits and the grammar alone."""
    model = AutoModelForCausalLM.from_pretrained(EMBEDDED_WEIGHTS, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(EMBEDDED_WEIGHTS)
    prompt = tokenizer.apply_chat_template([{"role": "user", "content": question}], add_generation_prompt=True, return_dict=False)
    digits = [tokenizer.encode(str(digit), add_special_tokens=False)[0] for digit in range(10)]

    def next_digit(answer: str) -> torch.Tensor:
        tokens = prompt + tokenizer.encode(answer, add_special_tokens=False)
        with torch.no_grad():
            logits = model(torch.tensor([tokens])).logits[0, -1].float()
        return torch.softmax(logits[digits] / TEMPERATURE, 0)

    first = next_digit(left)
    return {
        f"{left}{one}{middle}{two}{RIGHT}": float(first[one] * p)
        for one in range(10)
        for two, p in enumerate(next_digit(f"{left}{one}{middle}"))
    }


@pytest.fixture(scope="module")
def exact_years() -> dict[str, float]:
    """Of each year that begins with a digit of the prompt's ones."""
    return _exact(IN_THE_PROMPT, '{"year": ', "")


@pytest.mark.parametrize("engine", ["jumping", "looking_up"])
def test_drafts_out_of_the_prompt_leave_the_probabilities_as_they_are(
    engine: str, exact_years: dict[str, float], request: pytest.FixtureRequest
) -> None:
    running: RunningEngine = request.getfixturevalue(engine)
    texts = [
        choice["message"]["content"]
        for _ in range(0, SAMPLES, AT_ONCE)
        for choice in running.body(IN_THE_PROMPT, YEARS, temperature=TEMPERATURE, n=AT_ONCE)["choices"]
    ]
    seen, expected = _pooled(Counter(texts), exact_years)
    assert len(seen) > 10
    assert _p_value(seen, expected) > SIGNIFICANCE


@pytest.mark.parametrize("engine", ["jumping", "overlapping", "stepping", "looking_up"])
def test_free_choices_follow_the_exact_probabilities(engine: str, exact: dict[str, float], request: pytest.FixtureRequest) -> None:
    running: RunningEngine = request.getfixturevalue(engine)
    texts = [
        choice["message"]["content"]
        for seed in range(0, SAMPLES, AT_ONCE)  # choices take the seeds that follow
        for choice in running.body(QUESTION, SPEC, temperature=TEMPERATURE, seed=seed, n=AT_ONCE)["choices"]
    ]
    seen, expected = _pooled(Counter(texts), exact)
    assert len(seen) > 10
    assert _p_value(seen, expected) > SIGNIFICANCE


def _pooled(counts: Counter[str], exact: dict[str, float]) -> tuple[list[int], list[float]]:
    """Observed and expected counts; outcomes that are expected too seldom for the test are counted together."""
    assert counts.keys() <= exact.keys()
    seen, expected = [0], [0.0]
    for text, probability in exact.items():
        if (often := probability * SAMPLES) >= LEAST_EXPECTED:
            seen.append(counts[text])
            expected.append(often)
        else:
            seen[0] += counts[text]
            expected[0] += often
    scale = sum(seen) / sum(expected)
    return seen, [often * scale for often in expected]


def _p_value(seen: list[int], expected: list[float]) -> float:
    """Pearson's chi-squared test: the upper tail of the distribution with one degree of freedom less than there are outcomes."""
    statistic = sum((count - often) ** 2 / often for count, often in zip(seen, expected, strict=True))
    half = torch.tensor([(len(seen) - 1) / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))
