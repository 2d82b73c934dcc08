"""What machines ask and say, instruction by instruction, and what they do not put up with."""

from __future__ import annotations

import math

import pytest

from model_service.errors import InvalidLookahead, InvalidScore, OutOfTurn
from model_service.lookahead import Machine, Method, Parameters, Rejection, Stop, machine_for
from model_service.lookahead.instructions import (
    Ahead,
    Answer,
    Draft,
    Drafted,
    Emit,
    End,
    Model,
    Roll,
    Rolled,
    Row,
    Score,
    Scored,
    State,
    Verdict,
    Verified,
    Verify,
)

END = 0
STOP = Stop(6, frozenset({END}))


def machine(method: Method, *, stop: Stop = STOP, **parameters: object) -> Machine:
    return machine_for(method, Parameters(**{"d": 2, "k": 2, **parameters}), stop)  # type: ignore[arg-type]


def rows(*tops: tuple[int, ...]) -> Verified:
    return Verified(tuple(Row(top) for top in tops))


def rolled(*aheads: tuple[int, ...]) -> Rolled:
    return Rolled(tuple(Ahead(ahead) for ahead in aheads))


def test_cdlh_rolls_every_candidate_and_says_the_best() -> None:
    text = machine(Method.CDLH)
    assert text.start() == (Verify((), ()),)
    assert text.take(rows((5, 7, 9))) == (Roll(Model.TARGET, ((5,), (7,)), (2, 2)),)
    assert text.take(rolled((1, 2), (3, 4))) == (Score(((5, 1, 2), (7, 3, 4))),)
    assert text.take(Scored((0.1, 0.9))) == (Emit((7,), 0.9), Verify((7,), ()))


def test_of_equal_rewards_the_likelier_candidate_wins() -> None:
    text = machine(Method.CDLH_APPX)
    text.start()
    assert text.take(rows((5, 7))) == (Roll(Model.DRAFT, ((5,), (7,)), (2, 2)),)
    text.take(rolled((1, 2), (3, 4)))
    assert text.take(Scored((0.5, 0.5)))[0] == Emit((5,), 0.5)


def test_a_candidate_that_ends_the_text_has_no_lookahead() -> None:
    text = machine(Method.CDLH)
    text.start()
    assert text.take(rows((END, 7))) == (Roll(Model.TARGET, ((7,),), (2,)),)
    assert text.take(rolled((1, END))) == (Score(((END,), (7, 1, END))),)
    assert text.take(Scored((1.0, 0.0))) == (Emit((END,), 1.0), End(cut=False))


def test_lookaheads_end_where_the_text_must() -> None:
    text = machine(Method.CDLH, stop=Stop(2, frozenset()))
    text.start()
    assert text.take(rows((5, 7))) == (Roll(Model.TARGET, ((5,), (7,)), (1, 1)),)
    text.take(rolled((1,), (2,)))
    text.take(Scored((1.0, 0.0)))
    assert text.take(rows((1, 7))) == (Score(((5, 1), (5, 7))),)
    assert text.take(Scored((0.0, 1.0))) == (Emit((7,), 1.0), End(cut=True))


def test_fewer_allowed_tokens_than_candidates_are_enough() -> None:
    text = machine(Method.CDLH)
    text.start()
    assert text.take(rows((5,))) == (Roll(Model.TARGET, ((5,),), (2,)),)


def test_drafts_that_are_accepted_and_rewarded_are_said_without_the_token_behind_them() -> None:
    text = machine(Method.CDSL)
    assert text.start() == (Draft((), 2),)
    assert text.take(Drafted(Ahead((1, 2)))) == (Verify((), (1, 2)),)
    assert text.take(rows((1,), (2,), (3,))) == (Score(((1, 2),)),)
    assert text.take(Scored((0.3,))) == (Emit((1, 2), 0.3, Verdict(State.S1, 2, 2, 0.3)), Draft((1, 2), 2))


@pytest.mark.parametrize(("keep", "said"), [(False, ()), (True, (1,))])
def test_the_target_leads_where_drafts_fail(keep: bool, said: tuple[int, ...]) -> None:
    text = machine(Method.CDSL, b=1, keep_drafts=keep, reuse=False)
    text.start()
    text.take(Drafted(Ahead((1, 2))))
    assert text.take(rows((1, 8), (7, 8), (9,))) == (Score(((1,),)),)
    own = 7 if keep else 1
    assert text.take(Scored((0.0,))) == (Roll(Model.DRAFT, ((*said, own),), (2,)),)
    assert text.take(rolled((4, 4))) == (Score(((*said, own, 4, 4),)),)
    emit = Emit((*said, own), 1.0, Verdict(State.S2, 2, 1, 0.0))
    assert text.take(Scored((1.0,)))[0] == emit


def test_where_the_target_does_not_earn_enough_alone_candidates_are_compared() -> None:
    text = machine(Method.CDSL, b=1, reuse=False)
    text.start()
    text.take(Drafted(Ahead((1, 2))))
    text.take(rows((7, 8), (2,), (9,)))
    text.take(Scored((0.9,)))
    text.take(rolled((4, 4)))
    assert text.take(Scored((0.1,))) == (Roll(Model.DRAFT, ((7,), (8,)), (2, 2)),)
    text.take(rolled((4, 4), (5, 5)))
    assert text.take(Scored((0.1, 0.2)))[0] == Emit((8,), 0.2, Verdict(State.S3, 2, 0, 0.9))


def test_rows_behind_a_rejected_draft_are_not_needed() -> None:
    text = machine(Method.CDSL)
    text.start()
    text.take(Drafted(Ahead((1, 2))))
    assert text.take(rows((7, 8))) == (Score(((),)),)
    sampling = machine(Method.CDSL, rejection=Rejection.SAMPLING)
    sampling.start()
    sampling.take(Drafted(Ahead((1, 2), (-0.1, -0.1))))
    with pytest.raises(OutOfTurn):
        sampling.take(Verified((Row((7, 8), -9.0),)))


def test_an_end_that_is_not_rewarded_is_not_kept() -> None:
    text = machine(Method.CDSL, keep_drafts=True)
    text.start()
    text.take(Drafted(Ahead((1, END))))
    text.take(rows((1,), (END, 3), (1,)))
    assert text.take(Scored((0.0,))) == (Roll(Model.DRAFT, ((1, 3),), (2,)),)


def test_a_chosen_lookahead_is_the_next_draft() -> None:
    text = machine(Method.CDSL, k=1)
    text.start()
    text.take(Drafted(Ahead((1, 2))))
    text.take(rows((7,), (2,), (9,)))
    text.take(Scored((0.0,)))
    text.take(rolled((4, 5)))
    assert text.take(Scored((0.0,)))[1] == Verify((7,), (4, 5))


def test_only_the_first_of_the_targets_own_tokens_is_a_candidate_with_a_known_lookahead() -> None:
    text = machine(Method.CDSL, b=2, r_t=1.0)
    text.start()
    text.take(Drafted(Ahead((1, 2))))
    text.take(rows((7, 8), (2,), (9,)))
    text.take(Scored((0.0,)))
    text.take(rolled((4, 4)))
    assert text.take(Scored((0.0,))) == (Verify((7,), ()),)
    assert text.take(rows((8,))) == (Roll(Model.DRAFT, ((7, 8),), (2,)),)
    text.take(rolled((5, 5)))
    assert text.take(Scored((0.0,))) == (Roll(Model.DRAFT, ((8,),), (2,)),)
    assert text.take(rolled((6, 6))) == (Score(((7, 4, 4), (8, 6, 6))),)


def test_a_known_lookahead_that_has_ended_goes_no_further() -> None:
    text = machine(Method.CDLH_APPX, k=1, d=3)
    text.start()
    text.take(rows((5,)))
    text.take(rolled((4, END)))
    assert text.take(Scored((0.0,)))[1] == Verify((5,), ())
    assert text.take(rows((4,))) == (Score(((5, 4, END),)),)


def test_without_reuse_it_is_drafted_again() -> None:
    text = machine(Method.CDSL, k=1, reuse=False)
    text.start()
    text.take(Drafted(Ahead((1, 2))))
    text.take(rows((7,), (2,), (9,)))
    text.take(Scored((0.0,)))
    text.take(rolled((4, 5)))
    assert text.take(Scored((0.0,)))[1] == Draft((7,), 2)


def test_calls_and_steps_are_counted_apart() -> None:
    text = machine(Method.CDLH_APPX)
    text.start()
    text.take(rows((5, 7)))
    text.take(rolled((1, END), (3, 4)))
    text.take(Scored((0.1, 0.2)))
    account = text.account
    assert (account.draft_calls, account.draft_steps, account.target_calls, account.reward_calls) == (4, 2, 1, 2)


def test_what_a_grammar_forces_costs_no_call() -> None:
    text = machine(Method.CDLH_APPX, d=3)
    text.start()
    text.take(rows((5, 7)))
    text.take(Rolled((Ahead((1, 2, 3), forced=(False, True, True)), Ahead((3, 4, 9), forced=(True, False, False)))))
    text.take(Scored((0.2, 0.1)))
    assert (text.account.draft_calls, text.account.draft_steps, text.account.target_calls) == (3, 2, 1)
    drafted = machine(Method.CDSL)
    drafted.start()
    drafted.take(Drafted(Ahead((1, 2), forced=(True, True))))
    assert (drafted.account.draft_calls, drafted.account.draft_steps) == (0, 0)


def test_what_is_forced_behind_a_choice_is_said_with_it() -> None:
    text = machine(Method.CDLH, d=3, k=1)
    text.start()
    text.take(rows((5,)))
    text.take(Rolled((Ahead((1, 2, 3), forced=(True, True, False)),)))
    assert text.take(Scored((0.2,))) == (Emit((5, 1, 2), 0.2), Verify((5, 1, 2), ()))
    # The token that the model chose is its look-ahead's next one, and must be among what is tried there.
    assert text.take(rows((3,))) == (Roll(Model.TARGET, ((5, 1, 2, 3),), (2,)),)


def test_drafts_are_counted_whether_or_not_they_are_forced() -> None:
    text = machine(Method.CDSL)
    text.start()
    text.take(Drafted(Ahead((1, 2), forced=(True, False))))
    text.take(rows((1,), (2,), (3,)))
    assert text.take(Scored((0.3,)))[0] == Emit((1, 2), 0.3, Verdict(State.S1, 2, 2, 0.3))


def test_known_and_new_tokens_of_a_look_ahead_stay_told_apart() -> None:
    ahead = Ahead((1, 2)).and_then(Ahead((3, 4), forced=(True, False))).after(1)
    assert (ahead.forced, ahead.forwards, ahead.forced_first, ahead.after(1).forced_first) == ((False, True, False), 2, 0, 1)
    assert Ahead((1, 2)).forwards == 2


@pytest.mark.parametrize(
    "answer",
    [
        Scored((1.0,)),
        rows((1,)),
        rows((1,), (), (2,)),
        rows((1,), (2,), (3,), (4,)),
        Verified(()),
    ],
)
def test_an_answer_to_another_question_is_refused(answer: Answer) -> None:
    text = machine(Method.CDSL)
    text.start()
    text.take(Drafted(Ahead((1, 2))))
    with pytest.raises(OutOfTurn):
        text.take(answer)


@pytest.mark.parametrize("drafts", [(1,), (1, 2, 3), (END, 1), ()])
def test_drafts_of_another_length_than_was_asked_are_refused(drafts: tuple[int, ...]) -> None:
    text = machine(Method.CDSL)
    text.start()
    with pytest.raises(OutOfTurn):
        text.take(Drafted(Ahead(drafts)))


def test_lookaheads_and_rewards_are_as_many_as_texts() -> None:
    text = machine(Method.CDLH)
    text.start()
    text.take(rows((5, 7)))
    with pytest.raises(OutOfTurn):
        text.take(rolled((1, 2)))
    other = machine(Method.CDLH)
    other.start()
    other.take(rows((END,)))
    with pytest.raises(OutOfTurn):
        other.take(Scored((0.1, 0.2)))


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_a_reward_that_is_no_number_ends_the_text(reward: float) -> None:
    text = machine(Method.CDLH)
    text.start()
    text.take(rows((END, END + 1)))
    text.take(rolled((1, 2)))
    with pytest.raises(InvalidScore):
        text.take(Scored((0.5, reward)))


def test_sampling_without_probabilities_is_refused() -> None:
    text = machine(Method.CDSL, rejection=Rejection.SAMPLING)
    text.start()
    text.take(Drafted(Ahead((1, 2))))
    with pytest.raises(OutOfTurn):
        text.take(rows((1,), (2,), (3,)))


def test_nothing_can_be_told_to_a_text_that_has_ended() -> None:
    text = machine(Method.CDLH)
    text.start()
    text.take(rows((END,)))
    assert text.take(Scored((1.0,)))[-1] == End(cut=False)
    with pytest.raises(OutOfTurn):
        text.take(Scored((1.0,)))
    with pytest.raises(OutOfTurn):
        text.start()


@pytest.mark.parametrize(
    ("field", "value"),
    [("d", 0), ("d", 17), ("k", 0), ("k", 17), ("b", -1), ("b", 4), ("a_t", 0.0), ("a_t", 1.1), ("a_t", math.nan), ("r_t", math.nan)],
)
def test_parameters_out_of_bounds_name_their_field(field: str, value: float) -> None:
    with pytest.raises(InvalidLookahead) as refused:
        Parameters(**{field: value})  # type: ignore[arg-type]
    assert refused.value.field == field
