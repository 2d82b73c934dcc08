"""The machines say, token by token, what the plain loops of the paper say, on toy models of all sorts."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as some

from load_tests.lookahead.driving import Case, Driver
from model_service.lookahead import Method, Parameters, Rejection, Stop, machine_for
from tests.unit.model_service.lookahead.reference import Reference
from tests.unit.model_service.lookahead.toy_languages import END, SIZE, ToyLanguage

SEED = 5


@dataclass(frozen=True)
class World:
    """Two models, a prompt, and the tokens that are wanted in the text."""

    target: ToyLanguage
    draft: ToyLanguage
    prompt: tuple[int, ...]
    wanted: frozenset[int]
    most: int
    is_masked: bool = False

    def reward(self, text: tuple[int, ...]) -> float:
        return len(self.wanted & set(text)) / len(self.wanted)

    def reference(self, parameters: Parameters) -> Reference:
        ends = frozenset({END})
        return Reference(self.target.next, self.draft.next, self.prompt, self.reward, self.most, ends, d=parameters.d, k=parameters.k)

    def case(self, method: Method, parameters: Parameters) -> Case:
        machine = machine_for(method, parameters, Stop(self.most, frozenset({END})), SEED)
        return Case(self.prompt, machine, self.reward)

    def driver(self) -> Driver:
        return Driver(self.target, self.draft, frozenset({END}), most=16)


@some.composite
def worlds(draw: some.DrawFn) -> World:
    seed = draw(some.integers(0, 10_000))
    target = ToyLanguage.of(seed, end=draw(some.sampled_from((-1.5, 0.0, 1.0))))
    draft = target.blurred(seed + 1, by=draw(some.sampled_from((0.0, 0.2, 0.6, 3.0))))
    share = draw(some.sampled_from((0.0, 0.0, 0.5, 0.9)))
    if share:
        target, draft = target.masked(seed + 2, share), draft.masked(seed + 2, share)
    prompt = tuple(draw(some.lists(some.integers(1, SIZE - 1), max_size=3)))
    wanted = frozenset(draw(some.lists(some.integers(1, SIZE - 1), min_size=1, max_size=4)))
    return World(target, draft, prompt, wanted, draw(some.integers(1, 14)), is_masked=share > 0)


def parameter_sets() -> some.SearchStrategy[Parameters]:
    return some.builds(
        lambda d, k, b, **more: Parameters(d=d, k=k, b=min(b, d), **more),
        d=some.integers(1, 5),
        k=some.integers(1, 5),
        b=some.integers(0, 3),
        a_t=some.sampled_from((0.2, 0.3, 0.6, 1.0)),
        r_t=some.sampled_from((0.0, 0.25, 0.5, 1.0)),
        keep_drafts=some.booleans(),
        rejection=some.sampled_from(Rejection),
        reuse=some.booleans(),
    )


def expected(world: World, method: Method, parameters: Parameters) -> tuple[tuple[int, ...], Reference]:
    reference = world.reference(parameters)
    if method is Method.CDLH:
        return reference.cdlh(), reference
    if method is Method.CDLH_APPX:
        return reference.cdlh_appx(), reference
    chance = Random(SEED) if parameters.rejection is Rejection.SAMPLING else None
    return reference.cdsl(parameters.a_t, parameters.r_t, parameters.b, parameters.keep_drafts, chance), reference


@settings(max_examples=300, deadline=None)
@given(worlds(), some.sampled_from(Method), parameter_sets())
def test_a_machine_says_what_the_reference_says_at_its_cost(world: World, method: Method, parameters: Parameters) -> None:
    text, reference = expected(world, method, parameters)
    case = world.case(method, parameters)
    world.driver().run([case])
    account = case.machine.account
    assert case.said == text
    assert account.tokens == len(text)
    assert account.reward == world.reward(text)
    calls, needed = (account.draft_calls, account.target_calls), (reference.draft_calls, reference.target_calls)
    if parameters.reuse or (world.is_masked and method is not Method.CDSL):  # whose forced tokens are said at once
        assert calls <= needed
        assert calls[1] <= needed[1]
    else:
        assert calls == needed


@settings(max_examples=60, deadline=None)
@given(some.lists(some.tuples(worlds(), some.sampled_from(Method), parameter_sets()), min_size=2, max_size=6))
def test_texts_that_are_computed_together_are_the_same(many: list[tuple[World, Method, Parameters]]) -> None:
    world = many[0][0]
    cases = [world.case(method, parameters) for _, method, parameters in many]
    world.driver().run(cases)
    assert [case.said for case in cases] == [expected(world, method, parameters)[0] for _, method, parameters in many]


@settings(max_examples=100, deadline=None)
@given(worlds(), parameter_sets())
def test_states_add_up(world: World, parameters: Parameters) -> None:
    case = world.case(Method.CDSL, parameters)
    world.driver().run([case])
    account = case.machine.account
    assert account.accepted <= account.proposed <= parameters.d * sum(account.states.values())
    assert sum(account.states.values()) <= account.target_steps
    assert account.draft_steps <= account.draft_calls
    assert account.target_steps == account.target_calls
