"""Types of request fields, each with its bounds. `read` costs time in proportion to the value, and never repeats a value in an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from deployments.api.conversation import MOST_MEDIA, MessageReader
from deployments.config import LimitSettings
from deployments.errors import bad_request, over_limit

INT32, INT64 = 2**31 - 1, 2**63 - 1
LONGEST_TEXT = 1024
"""Characters of a short text: a stop text, a name, a salt."""
Bound = float | str | None
"""A number, or the name of one of the settings in `limits`; None: there is no bound."""


@dataclass(frozen=True, slots=True)
class FieldRules:
    """What an operator allows. `template_arguments` and `extra` are the names that `chat_template_kwargs` and `vllm_xargs` may have;
    `has_priorities`: the engine schedules by `priority`; `takes_embeddings`: it takes `prompt_embeds`."""

    limits: LimitSettings = field(default_factory=LimitSettings)
    template_arguments: frozenset[str] = frozenset()
    extra: frozenset[str] = frozenset()
    has_priorities: bool = False
    takes_embeddings: bool = False


class Kind(Protocol):
    def read(self, value: Any, name: str, rules: FieldRules) -> Any:
        """The value as the engine is to get it. Raises ApiError, which names the field."""

    def describe(self) -> str:
        """Type and bounds, as the docs have them."""


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false. vLLM would take 1 and "yes" as well, and stream what is taken for a whole answer here."""

    def read(self, value: Any, name: str, rules: FieldRules) -> bool:
        if not isinstance(value, bool):
            raise bad_request(f"'{name}' must be true or false.", name)
        return value

    def describe(self) -> str:
        return "true or false"


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number; 16.0 is one, "16" is none."""

    least: int
    most: Bound = INT32

    def read(self, value: Any, name: str, rules: FieldRules) -> int:
        if not _is_number(value) or (isinstance(value, float) and not value.is_integer()):
            raise bad_request(f"'{name}' must be a whole number.", name)
        _check_range(value, name, self.least, self.most, rules)
        return int(value)

    def describe(self) -> str:
        return f"whole number{_range(self.least, self.most)}"


@dataclass(frozen=True, slots=True)
class Number:
    least: float
    most: Bound

    def read(self, value: Any, name: str, rules: FieldRules) -> float:
        if not _is_number(value):
            raise bad_request(f"'{name}' must be a number.", name)
        _check_range(value, name, self.least, self.most, rules)
        return float(value)

    def describe(self) -> str:
        return f"number{_range(self.least, self.most)}"


@dataclass(frozen=True, slots=True)
class Text:
    """`most` characters; None: as many as the body has room for."""

    most: int | None = LONGEST_TEXT
    least: int = 0

    def read(self, value: Any, name: str, rules: FieldRules) -> str:
        if not isinstance(value, str) or len(value) < self.least:
            raise bad_request(f"'{name}' must be a text{' of at least one character' if self.least else ''}.", name)
        if self.most is not None and len(value) > self.most:
            raise over_limit(name, f"'{name}' may have {self.most} characters at most.")
        return value

    def describe(self) -> str:
        return "text" if self.most is None else f"text, at most {self.most:,} characters"


@dataclass(frozen=True, slots=True)
class OneOf:
    values: tuple[str, ...]

    def read(self, value: Any, name: str, rules: FieldRules) -> str:
        if not isinstance(value, str) or value not in self.values:
            raise bad_request(f"'{name}' must be one of: {', '.join(map(repr, self.values))}.", name)
        return value

    def describe(self) -> str:
        return ", ".join(f"`{value}`" for value in self.values)


@dataclass(frozen=True, slots=True)
class Entries:
    """An array; `alone`: one entry may stand for an array of it."""

    of: Kind
    most: Bound
    alone: bool = False

    def read(self, value: Any, name: str, rules: FieldRules) -> list[Any]:
        if self.alone and not isinstance(value, list):
            value = [value]
        if not isinstance(value, list):
            raise bad_request(f"'{name}' must be an array.", name)
        check_count(name, len(value), self.most, rules.limits)
        return [self.of.read(entry, name, rules) for entry in value]

    def describe(self) -> str:
        bound = f", at most {_shown(self.most)}" if self.most is not None else ""
        return f"{'one, or ' if self.alone else ''}array{bound}: {self.of.describe()}"


@dataclass(frozen=True, slots=True)
class BoundedTexts:
    """An array of texts with at most `most_bytes` in all. A text counts its bytes in UTF-8 and one more."""

    most: Bound
    most_bytes: int

    def read(self, value: Any, name: str, rules: FieldRules) -> list[str]:
        words: list[str] = Entries(Text(), self.most).read(value, name, rules)
        if sum(len(word.encode("utf-8", "surrogatepass")) + 1 for word in words) > self.most_bytes:
            raise over_limit(name, f"'{name}' may have {self.most_bytes} bytes in all.")
        return words

    def describe(self) -> str:
        return f"array of texts, at most {_shown(self.most)}, at most {self.most_bytes} bytes in all"


@dataclass(frozen=True, slots=True)
class Table:
    """An object whose names are free and whose values are alike; `numbered`: its names are numbers of tokens."""

    of: Kind
    most: Bound
    numbered: bool = False

    def read(self, value: Any, name: str, rules: FieldRules) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise bad_request(f"'{name}' must be an object.", name)
        check_count(name, len(value), self.most, rules.limits)
        if self.numbered and not all(map(_is_token, value)):
            raise bad_request(f"'{name}' must have numbers of tokens for names.", name)
        return {key: self.of.read(entry, name, rules) for key, entry in value.items()}

    def describe(self) -> str:
        return f"object, at most {_shown(self.most)} entries: {'token ids to ' if self.numbered else ''}{self.of.describe()}"


@dataclass(frozen=True, slots=True)
class Record:
    """An object with these members and no others."""

    members: Mapping[str, Kind]

    def read(self, value: Any, name: str, rules: FieldRules) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise bad_request(f"'{name}' must be an object.", name)
        found = {key: entry for key, entry in value.items() if entry is not None}
        if (unknown := next((key for key in found if key not in self.members), None)) is not None:
            place = f"{name}.{unknown[:LONGEST_NAME]}"
            raise bad_request(f"'{place}' is not supported.", place, "unsupported_parameter")
        return {key: self.members[key].read(entry, f"{name}.{key}", rules) for key, entry in found.items()}

    def describe(self) -> str:
        return "; ".join(f"`{name}`: {kind.describe()}" for name, kind in self.members.items())


LONGEST_NAME = 60
"""Characters of an unknown name that an error repeats."""


@dataclass(frozen=True, slots=True)
class ListedArguments:
    """An object whose names an operator lists in a setting; its values are texts, numbers, true and false, and, if `arrays`, arrays of
    them."""

    setting: str
    names: str
    arrays: bool = False

    def read(self, value: Any, name: str, rules: FieldRules) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise bad_request(f"'{name}' must be an object.", name)
        listed: frozenset[str] = getattr(rules, self.names)
        if (unknown := next((key for key in value if key not in listed), None)) is not None:
            place = f"{name}.{unknown[:LONGEST_NAME]}"
            raise bad_request(f"'{place}' is not one of those that the setting {self.setting} lists.", name, "unsupported_parameter")
        return {key: self._argument(entry, f"{name}.{key}", name) for key, entry in value.items()}

    def describe(self) -> str:
        return f"object; its names are those that `{self.setting}` lists"

    def _argument(self, value: Any, place: str, name: str) -> Any:
        entries = value if self.arrays and isinstance(value, list) else [value]
        if len(entries) > LONGEST_TEXT or not all(map(_is_argument, entries)):
            raise bad_request(f"'{place}' must be true, false, a number, or a text of at most {LONGEST_TEXT} characters.", name)
        return value


@dataclass(frozen=True, slots=True)
class Messages:
    def read(self, value: Any, name: str, rules: FieldRules) -> list[Any]:
        if isinstance(value, list):
            check_count(name, len(value), "max_messages", rules.limits)
        return MessageReader(rules.limits.max_messages).read(value)

    def describe(self) -> str:
        return f"array of messages, at most `limits.max_messages`, with as many parts and calls in all, {MOST_MEDIA} of them images"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text, a list of token ids, or a list of either."""

    def read(self, value: Any, name: str, rules: FieldRules) -> Any:
        several = value if isinstance(value, list) and not _is_tokens(value) else [value]
        if not all(isinstance(one, str) or _is_tokens(one) for one in several):
            raise bad_request(f"'{name}' must be a text, an array of token ids, or an array of texts or of such arrays.", name)
        if len({isinstance(one, str) for one in several}) > 1:
            raise bad_request(f"'{name}' must have either texts or arrays of token ids.", name)
        return value

    def describe(self) -> str:
        return "text, array of token ids, or array of either"


@dataclass(frozen=True, slots=True)
class Anything:
    """What another part of the service reads, with bounds of its own."""

    says: str

    def read(self, value: Any, name: str, rules: FieldRules) -> Any:
        return value

    def describe(self) -> str:
        return self.says


def check_count(name: str, count: int, most: Bound, limits: LimitSettings) -> None:
    """Raises ApiError where a field has more entries than `most`."""
    bound = _number_of(most, limits)
    if bound is not None and count > bound:
        raise over_limit(name, f"'{name}' may have {bound:,} entries at most.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_token(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= len(str(INT32))


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(one) is int and 0 <= one <= INT32 for one in value)


def _is_argument(value: Any) -> bool:
    return (isinstance(value, str) and len(value) <= LONGEST_TEXT) or (_is_number(value) and abs(value) <= INT64) or isinstance(value, bool)


def _check_range(value: float, name: str, least: float, most: Bound, rules: FieldRules) -> None:
    bound = _number_of(most, rules.limits)
    if not value >= least:
        raise bad_request(f"'{name}' must be {least:,} or more.", name)
    if bound is not None and not value <= bound:
        raise over_limit(name, f"'{name}' may be {bound:,} at most.")


def _number_of(bound: Bound, limits: LimitSettings) -> float | None:
    return getattr(limits, bound) if isinstance(bound, str) else bound


def _shown(bound: Bound) -> str:
    return f"`limits.{bound}`" if isinstance(bound, str) else f"{bound:,}"


def _range(least: float, most: Bound) -> str:
    if most in (INT32, INT64):
        return f" from {least:g}" if least > -INT32 else ""
    return f" from {least:g} to {_shown(most)}"
