"""Texts of one's own, with the rewards that they are to earn, and the service that decodes for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from deployments.client import StructuredClient
from deployments.commands.lookahead.grid import Outcome, Thresholds, Tried
from deployments.errors import ApiError
from grammar_service.errors import MaskcastError

Show: TypeAlias = Callable[[str, int, int], None]
Ask: TypeAlias = Callable[["Case", dict[str, Any]], Outcome]
PART = "settings of the thresholds"


class TuningFailed(MaskcastError):
    """The validation file is none, or the service does not answer it; the message says what to do."""


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the file. `prompt`: a question, or messages; `reward` and `structured_outputs` as in requests."""

    prompt: str | list[dict[str, Any]]
    reward: dict[str, Any]
    structured_outputs: dict[str, Any] | None = None


def read_cases(path: Path) -> list[Case]:
    """Raises TuningFailed."""
    try:
        cases = [msgspec.json.decode(line, type=Case) for line in path.read_bytes().splitlines() if line.strip()]
    except (OSError, msgspec.DecodeError) as error:
        raise TuningFailed(f"{path} is not JSON lines of prompt and reward: {error}") from None
    if not cases:
        raise TuningFailed(f"{path} has no line")
    return cases


def asking(client: StructuredClient, lengths: dict[str, int], max_tokens: int) -> Ask:
    """`lengths`: d and k, for all."""

    def ask(case: Case, thresholds: dict[str, Any]) -> Outcome:
        lookahead = {"method": "cdsl", "reward": case.reward, **lengths, **thresholds}
        constraint = {} if case.structured_outputs is None else {"structured_outputs": case.structured_outputs}
        try:
            answer = client.generate(case.prompt, lookahead=lookahead, max_tokens=max_tokens, **constraint)
        except ApiError as error:
            raise TuningFailed(f"the service answers {case.prompt!r} with {error.status}: {error.message}") from error
        return outcome_of(answer.usage)

    return ask


def outcome_of(usage: dict[str, Any]) -> Outcome:
    told = usage["completion_tokens_details"]["lookahead"]
    return Outcome(float(told["reward"] or 0), max(1, usage["completion_tokens"]), told["draft_calls"], told["target_calls"])


def tried(
    ask: Ask, cases: Sequence[Case], grid: Sequence[Thresholds], enough: float, cost_ratio: float, at_once: int, show: Show
) -> list[Tried]:
    """Every case under all thresholds of the grid, so many at a time. Raises TuningFailed."""
    found: list[Tried] = []
    show(PART, 0, len(grid))
    with ThreadPoolExecutor(at_once, "cases") as threads:
        for number, thresholds in enumerate(grid, 1):
            fields = thresholds.fields()
            outcomes = list(threads.map(lambda case, fields=fields: ask(case, fields), cases))
            found.append(Tried.of(thresholds, outcomes, enough, cost_ratio))
            show(PART, number, len(grid))
    return found
