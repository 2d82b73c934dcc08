"""What a grammar has done to the answers to one call: how many tokens it forced, and where they stand in the text; how many answers had
to leave the tokenizer's own tokens, and how many were closed at their limit. Beside it, how many tokens were drafted, and how many of these
accepted."""

from __future__ import annotations

from dataclasses import dataclass, field

Span = tuple[int, int]


@dataclass
class _Choice:
    spans: list[Span] = field(default_factory=list)
    reported: int = 0


class ForcedAccount:
    """Spans are offsets in characters of a choice's generated text, start and end; neighbours are joined."""

    def __init__(self) -> None:
        self.tokens = 0
        self.segments = 0
        self.not_canonical = 0
        self.closed = 0
        self.drafted = 0
        self.accepted = 0
        self._choices: dict[int, _Choice] = {}

    def add(self, choice: int, tokens: int, start: int, end: int) -> None:
        """`tokens` forced tokens that became the text from `start` to `end`: none where a special token was forced, and less than before
        where they ended a stop string that began ahead of them."""
        self.tokens += tokens
        self.segments += 1
        if end < start:
            self.cut(choice, end)
            return
        spans = self._choices.setdefault(choice, _Choice()).spans
        if spans and spans[-1][1] == start and len(spans) > self._choices[choice].reported:
            spans[-1] = (spans[-1][0], end)
        elif end > start:
            spans.append((start, end))

    def cut(self, choice: int, length: int) -> None:
        """The text of a choice has become shorter; what was reported of it stays so."""
        if choice in self._choices:
            of = self._choices[choice]
            of.spans = [(start, min(end, length)) for start, end in of.spans if start < length]

    def spans(self, choice: int) -> list[Span]:
        """All spans of a choice."""
        return list(self._choices[choice].spans) if choice in self._choices else []

    def new_spans(self, choice: int) -> list[Span]:
        """Those that have come since they were last asked for."""
        if choice not in self._choices:
            return []
        of = self._choices[choice]
        new, of.reported = of.spans[of.reported :], len(of.spans)
        return new
