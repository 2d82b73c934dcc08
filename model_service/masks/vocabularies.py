"""The vocabularies of a node's engines, and the grammars that are loaded for them: once, however many engines have them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from weakref import WeakValueDictionary

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.errors import InvalidMessage
from model_service.loaded_grammars import LoadedGrammars


@dataclass(frozen=True, eq=False)
class Vocabulary:
    tokenizer: GrammarTokenizer
    grammars: LoadedGrammars


class Vocabularies:
    """Kept for as long as anybody uses them; called from several threads."""

    def __init__(self) -> None:
        self._held: WeakValueDictionary[str, Vocabulary] = WeakValueDictionary()
        self._making: defaultdict[str, Lock] = defaultdict(Lock)
        self._lock = Lock()

    def get(self, fingerprint: str, portable: Callable[[], bytes]) -> Vocabulary:
        """The vocabulary of a fingerprint; if nobody has it, made of what `portable` tells (see `GrammarTokenizer`), which takes seconds.

        Raises:
            InvalidMessage: what is told has another fingerprint.
            ArtifactError: it is no vocabulary at all.
        """
        with self._lock:
            making = self._making[fingerprint]
        with making:
            vocabulary = self._held.get(fingerprint)
            if vocabulary is None:
                vocabulary = self._held[fingerprint] = _made(fingerprint, portable())
        return vocabulary


def _made(fingerprint: str, portable: bytes) -> Vocabulary:
    tokenizer = GrammarTokenizer.from_portable(portable)
    if tokenizer.fingerprint != fingerprint:
        raise InvalidMessage(f"a vocabulary with fingerprint {tokenizer.fingerprint[:16]}… came as {fingerprint[:16]}…")
    # Python code that takes a while: better now than while masks are filled.
    _ = tokenizer.spaces, tokenizer.names
    return Vocabulary(tokenizer, LoadedGrammars(tokenizer))
