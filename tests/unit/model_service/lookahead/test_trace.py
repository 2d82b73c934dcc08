"""What was tried at each step is told once, as text, and not without end."""

from __future__ import annotations

from model_service.lookahead.instructions import Emit, State, Tokens, Verdict
from model_service.lookahead.trace import CONTEXT, MOST_CHARACTERS, Trace, Traces


def spelled(tokens: Tokens) -> str:
    return "".join(f" {token}" for token in tokens)


def test_a_step_has_what_was_tried_with_its_rewards_and_what_was_said() -> None:
    trace = Trace(spelled)
    trace.tried([(1, 2), (3,)], [0.5, 1.0])
    trace.said(Emit((3,), 1.0))
    assert trace.new_steps() == [
        {"text": " 3", "tokens": 1, "reward": 1.0, "tried": [{"text": " 1 2", "reward": 0.5}, {"text": " 3", "reward": 1.0}]}
    ]
    trace.tried([(3, 4, 5)], [0.25])
    trace.said(Emit((4,), 0.25, Verdict(State.S4, 3, 2, 0.2)))
    (step,) = trace.new_steps()
    assert step["tried"] == [{"text": " 4 5", "reward": 0.25}]
    assert (step["state"], step["proposed"], step["accepted"]) == ("s4", 3, 2)
    assert trace.new_steps() == []


def test_a_character_in_two_tokens_is_told_by_the_last_of_them() -> None:
    trace = Trace(lambda tokens: bytes(tokens).decode(errors="replace"))
    first, second = "é".encode()
    trace.said(Emit((first,), 0.0))
    trace.said(Emit((second, ord("!")), 0.0))
    assert [step["text"] for step in trace.new_steps()] == ["\ufffd", "é!"]


def test_a_long_answer_is_not_decoded_anew_at_each_step() -> None:
    decoded = list[int]()

    def spelled_and_counted(tokens: Tokens) -> str:
        decoded.append(len(tokens))
        return spelled(tokens)

    trace = Trace(spelled_and_counted)
    said: Tokens = ()
    for token in range(1000):
        trace.tried([(*said, token, 7)], [0.0])
        trace.said(Emit((token,), 0.0))
        said = (*said, token)
    assert max(decoded) == CONTEXT + 2
    steps = trace.new_steps()
    assert [step["text"] for step in steps] == [f" {token}" for token in said]
    assert [step["tried"][0]["text"] for step in steps] == [f" {token} 7" for token in said]


def test_what_is_too_much_is_counted_only() -> None:
    trace = Trace(lambda tokens: "x" * 100 * len(tokens))
    said: Tokens = ()
    for _ in range(500):
        trace.tried([(*said, 1, 2, 3)] * 9, [0.0] * 9)
        trace.said(Emit((1,), 0.0))
        said = (*said, 1)
    steps = trace.new_steps()
    assert 0 < len(steps) < 500
    assert len(steps) + trace.left_out == 500
    assert sum(len(one["text"]) for step in steps for one in step["tried"]) < MOST_CHARACTERS + 9 * 300


def test_choices_have_their_own() -> None:
    traces = Traces()
    for choice in (1, 0):
        traces.begin(choice, spelled).said(Emit((choice,), 0.0))
    assert [[step["text"] for step in traces.new_steps(choice)] for choice in (0, 1)] == [[" 0"], [" 1"]]
    assert traces.new_steps(0) == []
    assert traces.left_out == 0
