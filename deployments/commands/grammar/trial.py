"""One constraint compiled as the service does it, with what that costs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from deployments.reporting.stopwatch import timed
from grammar_service.artifacts.artifact import ArtifactHeader, authenticate
from grammar_service.artifacts.cache import MemoryCache, TieredCache
from grammar_service.artifacts.reader import Reader
from grammar_service.compiler.service import GrammarCompiler
from grammar_service.limits import Limits
from grammar_service.messages import Compiled, Refusal
from grammar_service.resolve import resolve
from grammar_service.sandbox import SandboxSettings
from grammar_service.spec import GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

DEADLINE_S = 60.0
MEMORY_BYTES = 256 << 20
SECRET = b"trial"


@dataclass(frozen=True, slots=True)
class Trial:
    """Milliseconds: `answer_ms` from the request to the artifact, compiling in the sandbox and encoding included; `load_ms` as measured
    here, where the header has what readers may expect; `mask_ms` for the first mask."""

    header: ArtifactHeader
    artifact_bytes: int
    answer_ms: float
    load_ms: float
    mask_ms: float
    forced: bytes


def try_out(spec: GrammarSpec, tokenizer_path: str) -> Trial:
    """Raises GrammarError: it is refused, or does not compile within DEADLINE_S. Raises PoolUnavailable."""
    compiled, fingerprint = asyncio.run(_compiled(spec, tokenizer_path))
    tokenizer = GrammarTokenizer.load(tokenizer_path)
    reader = Reader(tokenizer, SECRET)
    reader.warm_up()
    grammar, load_ms = timed(lambda: reader.load(compiled.blob, compiled.key))
    _, mask_ms = timed(lambda: reader.mask(grammar))
    return Trial(
        header=authenticate(compiled.blob, SECRET, key=compiled.key, fingerprint=fingerprint).header,
        artifact_bytes=len(compiled.blob),
        answer_ms=compiled.cost_ms,
        load_ms=load_ms,
        mask_ms=mask_ms,
        forced=grammar.matcher(None, 0).forced_bytes(),
    )


async def _compiled(spec: GrammarSpec, tokenizer_path: str) -> tuple[Compiled, str]:
    """The artifact of the backend that serves the constraint in the long run, and the vocabulary's fingerprint."""
    cache = TieredCache(MemoryCache(MEMORY_BYTES), None)
    compiler = GrammarCompiler(tokenizer_path, DEADLINE_S, SandboxSettings(workers=1), cache, SECRET)
    try:
        await compiler.start()
        grammar = resolve(spec, Limits(), compiler.fingerprint)
        answer = await compiler.compile(replace(grammar.request(), stopgap=None))
        if isinstance(answer, Refusal):
            raise answer.error()
        return answer, compiler.fingerprint
    finally:
        await compiler.close()
