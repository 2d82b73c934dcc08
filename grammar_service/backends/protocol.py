"""What every backend and every matcher promises, whichever library stands behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from grammar_service.schema.fault import Fault
from grammar_service.spec import GrammarSpec

if TYPE_CHECKING:
    import torch

    from grammar_service.vocabulary.tokenizer import GrammarTokenizer

__all__ = ["Backend", "CompiledGrammar", "CompiledPayload", "Fault", "Matcher", "accepted_prefix"]


@dataclass(frozen=True, slots=True)
class CompiledPayload:
    """What a backend made of a spec. `compile_ms`: compiling alone; `load_ms`: what a reader is expected to pay until it is ready;
    `expanded_bytes`: the size of its tables when they are unpacked, 0 where it holds none."""

    data: bytes
    compile_ms: float = 0.0
    load_ms: float = 0.0
    expanded_bytes: int = 0


class Matcher(Protocol):
    """The cursor of one request in a compiled grammar. V is the tokenizer's `vocab_size`.

    A stop token is accepted exactly where the text so far is complete; then `is_terminated()` is True and nothing more is accepted.
    Where the text is complete and nothing can follow, only stop tokens are allowed.
    """

    @property
    def names_tokens(self) -> bool:
        """Whether the grammar has special tokens, so that more than stop tokens may come where no text may."""

    def accept(self, token: int) -> bool:
        """Advance by one token; False (state unchanged) where the grammar forbids it."""

    def rollback(self, n: int) -> None:
        """Take back the last n accepted tokens, a stop token included. Raises ValueError: fewer were accepted."""

    def fill(self, bitmask: torch.Tensor, row: int) -> None:
        """Write the allowed tokens to a row of an int32 tensor [rows, ceil(V/32)], bit set = allowed; all clear once terminated."""

    def forced_bytes(self) -> bytes:
        """What every text goes on with from here, as far as the library can tell; empty where the text is complete, and where looking
        for it might take long. State unchanged.

        May end inside a character.
        """

    def is_terminated(self) -> bool:
        """A stop token has been accepted."""

    def reset(self) -> None:
        """Back to the state before the first token."""


def accepted_prefix(matcher: Matcher, tokens: Sequence[int]) -> int:
    """How many of the tokens the matcher would accept one after another; its state is unchanged afterwards."""
    length = 0
    for token in tokens:
        if not matcher.accept(token):
            break
        length += 1
    matcher.rollback(length)
    return length


class CompiledGrammar(Protocol):
    @property
    def size_bytes(self) -> int:
        """About how much memory it holds."""

    def matcher(self, stop_token_ids: Sequence[int] | None, max_rollback_tokens: int) -> Matcher:
        """A cursor at the start. `stop_token_ids` None takes the tokenizer's; `max_rollback_tokens` is the least that it can take back."""


class Backend(Protocol):
    """Turns specs into payloads (bytes that travel) and payloads into grammars. Its state is only what makes it faster."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Package and serialization version: payloads of another version are not read."""

    def unsupported(self, spec: GrammarSpec) -> list[Fault]:
        """What it would not enforce exactly; [] means that it enforces all. Pure Python, linear time.

        Raises:
            InvalidGrammar, GrammarTooLarge, UnsupportedGrammar: the spec is at fault whatever the backend.
        """

    def library_source(self, spec: GrammarSpec) -> str | None:
        """What `compile` would give the library for a spec without faults, None where that is not for another process to write."""

    def compile(self, spec: GrammarSpec, tokenizer: GrammarTokenizer, library_source: str | None = None) -> CompiledPayload:
        """The payload with its costs; `library_source` is that of the spec, where somebody has it. Native code: run it in the sandbox.

        Raises GrammarError.
        """

    def load(self, payload: bytes, tokenizer: GrammarTokenizer) -> CompiledGrammar:
        """The grammar of an authentic payload, read or compiled once more: keep the backend, since that goes faster where it is warm.

        May be called from several threads. Raises ArtifactError.
        """
