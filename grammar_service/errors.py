"""Every error that a package raises on purpose descends from `MaskcastError`, so that nothing foreign passes a door untranslated. The
other packages draw their own branches in their `errors.py`; `router`, which imports none of them, raises `ValueError`.

MaskcastError
├── GrammarError            the constraint is at fault: a 400 with a field and, for JSON, a pointer
│   ├── InvalidGrammar      it is not a schema, regex, grammar, … at all
│   │   └── NothingMatches  no value satisfies it
│   ├── UnsupportedGrammar  no backend enforces all of it
│   │   └── Inexact         (schema.algebra) a set of values that cannot be described exactly
│   ├── GrammarTooLarge     over a configured limit
│   ├── CompileTimeout      over its compile deadline
│   └── CompileFailed       the compiler ran out of memory or crashed on it
├── PoolBusy                the compile pool's queue is full: a 503 with Retry-After
├── PoolUnavailable         no compile child could be started
├── ChildDied               (sandbox) a compile child or the zygote ended: caught where a new one is started
├── NotConfined             (sandbox) no filter of system calls can be had: compile children go on with the other bounds
├── ArtifactError           bytes that are not an intact artifact of ours: a cache miss, never a user's error
├── EntryError              bytes that are not the registry's intact entry for a name
├── CacheUnavailable        the shared cache does not answer, or not in time
└── UnusableFile            a file, folder or package that a command was pointed to and cannot use
"""

from __future__ import annotations


class MaskcastError(Exception):
    """The root of all errors that the project raises on purpose."""


class GrammarError(MaskcastError):
    """The constraint is at fault.

    `pointer` is the JSON pointer (RFC 6901) of the fault inside the constraint, None where there is no such place.
    """

    code = "invalid_grammar"

    def __init__(self, message: str, pointer: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.pointer = pointer

    def __reduce__(self) -> tuple[type[GrammarError], tuple[str, str | None]]:
        return type(self), (self.message, self.pointer)


class InvalidGrammar(GrammarError):
    code = "invalid_grammar"


class NothingMatches(InvalidGrammar):
    """The constraint is well formed, but no value satisfies it."""


class UnsupportedGrammar(GrammarError):
    code = "unsupported_grammar"


class GrammarTooLarge(GrammarError):
    code = "grammar_too_large"


class CompileTimeout(GrammarError):
    code = "grammar_compile_timeout"


class CompileFailed(GrammarError):
    code = "grammar_compile_failed"


class PoolBusy(MaskcastError):
    """The compile pool takes no more work now."""


class PoolUnavailable(MaskcastError):
    """The compile pool cannot work at all now."""


class ArtifactError(MaskcastError):
    """Bytes that are not an intact artifact for this vocabulary and these versions."""


class EntryError(MaskcastError):
    """Bytes that are not an intact entry of the registry for the name they stand under."""


class CacheUnavailable(MaskcastError):
    """The shared cache does not answer now."""


class UnusableFile(MaskcastError):
    """A file, folder or package that a command was pointed to cannot be used."""
