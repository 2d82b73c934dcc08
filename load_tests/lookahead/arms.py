"""The ways to decode that are compared, and what each has said and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from transformers import PreTrainedTokenizerFast

from load_tests.lookahead.concept_sets import ConceptSet
from load_tests.lookahead.driving import Case, Driver, LanguageModel
from load_tests.lookahead.models import prompt_of
from load_tests.lookahead.plain import beam_search, greedy, nucleus
from model_service.lookahead import Method, Parameters, Rejection, Stop, machine_for
from model_service.lookahead.instructions import State, Tokens
from model_service.lookahead.rewards.concepts import Concepts

MOST = 40
"""Tokens of an answer; sentences have about 11."""
BEAM = 3
SEED = 3
FIXED = Parameters(reuse=False)
"""The paper's for its own experiments, in the reading that its counts fit, with every look-ahead computed."""


class Task:
    """One set of concepts: its prompt, which `before` begins, and what an answer is worth."""

    def __init__(self, drawn: ConceptSet, tokenizer: PreTrainedTokenizerFast, before: Tokens = ()) -> None:
        self.prompt: Tokens = (*before, *tokenizer.encode(prompt_of(drawn.concepts), add_special_tokens=False))
        self.words = drawn.concepts
        self.concepts = len(drawn.concepts)
        self._reward = Concepts(drawn.concepts, "en")
        self._tokenizer = tokenizer

    def text(self, answer: Tokens) -> str:
        return str(self._tokenizer.decode(answer, skip_special_tokens=True))

    def reward(self, answer: Tokens) -> float:
        return self._reward.score([self.text(answer)])[0]


@dataclass(frozen=True, slots=True)
class LookaheadArm:
    name: str
    method: Method
    parameters: Parameters


@dataclass(slots=True)
class Outcome:
    """What one arm said for each task, and its calls in all."""

    name: str
    said: list[Tokens]
    draft_calls: int = 0
    target_calls: int = 0
    states: dict[State, int] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        return sum(map(len, self.said))


CDLH = LookaheadArm("CDLH", Method.CDLH, FIXED)
APPX = LookaheadArm("CDLH-appx", Method.CDLH_APPX, FIXED)
CDSL = LookaheadArm("CDSL", Method.CDSL, FIXED)
KEEPING = LookaheadArm("CDSL, drafts kept", Method.CDSL, Parameters(reuse=False, keep_drafts=True))
STRICT = LookaheadArm("CDSL, r_t = 0.9, b = 1", Method.CDSL, Parameters(reuse=False, r_t=0.9, b=1))
SAMPLING = LookaheadArm("CDSL, by sampling", Method.CDSL, Parameters(reuse=False, rejection=Rejection.SAMPLING))
REUSING = tuple(
    LookaheadArm(f"{name}, reused", method, Parameters()) for name, method in zip(("CDLH", "CDLH-appx", "CDSL"), Method, strict=True)
)
LOOKAHEADS = (CDLH, APPX, CDSL, KEEPING, STRICT, SAMPLING, *REUSING)


@dataclass(frozen=True, slots=True)
class Experiment:
    """Two models, and the tasks that they are given."""

    target: LanguageModel
    draft: LanguageModel
    tasks: Sequence[Task]
    stop: Stop

    def look_ahead(self, arm: LookaheadArm) -> Outcome:
        cases = [Case(t.prompt, machine_for(arm.method, arm.parameters, self.stop, n), t.reward) for n, t in enumerate(self.tasks)]
        Driver(self.target, self.draft, self.stop.ends, arm.parameters.k).run(cases)
        accounts = [case.machine.account for case in cases]
        return Outcome(
            arm.name,
            [case.said for case in cases],
            sum(account.draft_calls for account in accounts),
            sum(account.target_calls for account in accounts),
            {state: sum(account.states[state] for account in accounts) for state in State},
        )

    def plain(self) -> list[Outcome]:
        """Greedily by either model, and the target by beams and by nuclei; a call a token, the draft's own are counted as the target's."""
        prompts = [task.prompt for task in self.tasks]
        said = {
            "greedy": greedy(self.target, prompts, self.stop),
            "greedy, the draft alone": greedy(self.draft, prompts, self.stop),
            "nucleus 0.9": nucleus(self.target, prompts, self.stop, 0.9, SEED),
            "nucleus 0.5": nucleus(self.target, prompts, self.stop, 0.5, SEED),
        }
        outcomes = [Outcome(name, texts, target_calls=sum(map(len, texts))) for name, texts in said.items()]
        beams = [beam_search(self.target, prompt, self.stop, BEAM) for prompt in prompts]
        return [*outcomes, Outcome(f"beam {BEAM}", [text for text, _ in beams], target_calls=sum(calls for _, calls in beams))]
