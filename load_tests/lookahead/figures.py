"""What is told of each arm, and what was promised of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from deployments.reporting.report import Target
from load_tests.lookahead.arms import APPX, CDLH, CDSL, REUSING, Experiment, Outcome
from load_tests.lookahead.driving import log_softmax
from load_tests.lookahead.near_ties import Compared, Loop, compare
from model_service.lookahead.cost import runtime

GREEDY, DRAFT_ALONE = "greedy", "greedy, the draft alone"
Row = Mapping[str, Any]


def row(experiment: Experiment, outcome: Outcome, cost_ratio: float) -> dict[str, Any]:
    """Percent of tasks whose concepts all are said (`hard`) and of concepts (`soft`); calls and P for a token; `nats`: the target's
    negative log-likelihood of a token."""
    rewards = [task.reward(said) for task, said in zip(experiment.tasks, outcome.said, strict=True)]
    concepts = [task.concepts for task in experiment.tasks]
    draft, target = outcome.draft_calls / outcome.tokens, outcome.target_calls / outcome.tokens
    return {
        "method": outcome.name,
        "hard": 100 * sum(reward == 1 for reward in rewards) / len(rewards),
        "soft": 100 * sum(reward * count for reward, count in zip(rewards, concepts, strict=True)) / sum(concepts),
        "draft_calls": draft,
        "target_calls": target,
        "p": cost_ratio if outcome.name == DRAFT_ALONE else runtime(cost_ratio, draft, target),
        "nats": _nats(experiment, outcome),
        "tokens": outcome.tokens / len(outcome.said),
        **{state.value: count for state, count in outcome.states.items()},
    }


def targets(rows: Sequence[Row]) -> list[Target]:
    of = {one["method"]: one for one in rows}
    greedy, cdlh, appx, cdsl = (of[name] for name in (GREEDY, CDLH.name, APPX.name, CDSL.name))
    lookahead_calls = CDLH.parameters.k * CDLH.parameters.d
    return [
        Target.at_least("greedy: all concepts said", greedy["hard"], 55, "%"),
        Target.at_most("greedy: all concepts said, not more than", greedy["hard"], 85, "%"),
        Target.at_least("all concepts said, CDLH less CDLH-appx", cdlh["hard"] - appx["hard"], 0, "points"),
        Target.at_least("all concepts said, CDLH-appx less CDSL", appx["hard"] - cdsl["hard"], 0, "points"),
        Target.at_least("all concepts said, CDSL less greedy", cdsl["hard"] - greedy["hard"], 0.1, "points"),
        Target.at_most("calls of CDLH, off 1 + those of CDLH-appx's draft", _off(cdlh["target_calls"], 1 + appx["draft_calls"]), 10, "%"),
        Target.at_most("calls of CDLH, of at most 1 + k · d", cdlh["target_calls"], 1 + lookahead_calls, ""),
        Target.at_least("P, CDLH-appx / CDSL", appx["p"] / cdsl["p"], 1, "×"),
        Target.at_least("P, CDLH / CDSL", cdlh["p"] / cdsl["p"], 1.5, "×"),
        *(_saved(of, arm.name) for arm in REUSING),
    ]


def same_texts(outcomes: Sequence[Outcome], expected: Mapping[str, Sequence[Loop]]) -> list[Target]:
    """Reuse changes no text. A look-ahead is the next one only as far as forwards of other batches give the same figures: near-ties, which
    the plain loops have found, are excused."""
    said = {outcome.name: outcome.said for outcome in outcomes}
    found: list[Compared] = []
    for arm in REUSING:
        fixed = said[arm.name.removesuffix(", reused")]
        found.append(compare([replace(loop, said=text) for loop, text in zip(expected[arm.name], fixed, strict=True)], said[arm.name]))
    near = 100 * sum(one.excused for one in found) / sum(one.texts for one in found)
    return [
        Target.at_most("texts that reuse changes", sum(one.wrong for one in found), 0, ""),
        Target.at_most("near-ties excused, of the texts with reuse", near, 2, "%"),
    ]


def in_time(minutes: float | None) -> Target:
    """None: some of it had been found before."""
    return Target.at_most("the whole experiment, training among it", minutes, 20, "min")


def compared_cells(found: Compared) -> dict[str, int]:
    """For the row of an arm."""
    return {"compared": found.texts, "equal": found.equal, "near_ties": found.excused}


def as_loops(compared: Sequence[Compared]) -> list[Target]:
    near = 100 * sum(found.excused for found in compared) / sum(found.texts for found in compared)
    return [
        Target.at_most("texts that are not those of plain loops", sum(found.wrong for found in compared), 0, ""),
        Target.at_most("near-ties excused, of all texts", near, 2, "%"),
    ]


def _saved(of: Mapping[str, Row], name: str) -> Target:
    """The part of P that reuse saves."""
    fixed, reused = of[name.removesuffix(", reused")], of[name]
    return Target.at_least(f"P that reuse saves {name.removesuffix(', reused')}", 100 * (1 - reused["p"] / fixed["p"]), 0, "%")


def _off(value: float, expected: float) -> float:
    return 100 * abs(value / expected - 1)


def _nats(experiment: Experiment, outcome: Outcome) -> float:
    texts = [task.prompt + said for task, said in zip(experiment.tasks, outcome.said, strict=True)]
    computed = experiment.target.logits(texts, [len(said) + 1 for said in outcome.said])
    total = sum(
        float(log_softmax(logits)[token])
        for rows, said in zip(computed, outcome.said, strict=True)
        for logits, token in zip(rows, said, strict=False)
    )
    return -total / outcome.tokens
