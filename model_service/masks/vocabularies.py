"""The vocabularies of a node's engines, and the grammars that are loaded for them: once, however many engines have them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from threading import Lock
from weakref import WeakValueDictionary

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.errors import InvalidMessage
from model_service.loaded_grammars import LoadedGrammars


class Vocabularies:
    """Kept for as long as anybody uses them; called from several threads."""

    def __init__(self, grammar_bytes: int) -> None:
        """Of each one's grammars, that stay loaded."""
        self._grammar_bytes = grammar_bytes
        self._held: WeakValueDictionary[str, LoadedGrammars] = WeakValueDictionary()
        self._making: defaultdict[str, Lock] = defaultdict(Lock)
        self._lock = Lock()

    def get(self, fingerprint: str, portable: Callable[[], bytes]) -> LoadedGrammars:
        """Those of a vocabulary; if nobody has it, it is made of what `portable` tells (see `GrammarTokenizer`), which takes seconds.

        Raises:
            InvalidMessage: what is told has another fingerprint.
            ArtifactError: it is no vocabulary at all.
        """
        with self._lock:
            making = self._making[fingerprint]
        with making:
            grammars = self._held.get(fingerprint)
            if grammars is None:
                grammars = self._held[fingerprint] = LoadedGrammars(_made(fingerprint, portable()), self._grammar_bytes)
        return grammars


def _made(fingerprint: str, portable: bytes) -> GrammarTokenizer:
    tokenizer = GrammarTokenizer.from_portable(portable)
    if tokenizer.fingerprint != fingerprint:
        raise InvalidMessage(f"a vocabulary with fingerprint {tokenizer.fingerprint[:16]}… came as {fingerprint[:16]}…")
    # Python code that takes a while: better now than while masks are filled.
    _ = tokenizer.spaces, tokenizer.names
    return tokenizer
