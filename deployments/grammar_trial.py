"""One constraint compiled as the service does it, with what that costs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace

import torch

from grammar_service.artifact import ArtifactHeader, decode
from grammar_service.backends import CompiledGrammar, backend_named
from grammar_service.cache import MemoryCache, TieredCache
from grammar_service.forced_prefix import ForcedPrefix
from grammar_service.limits import Limits
from grammar_service.messages import Compiled, Refusal
from grammar_service.resolve import resolve
from grammar_service.sandbox import SandboxSettings
from grammar_service.service import GrammarCompiler
from grammar_service.spec import GrammarSpec
from grammar_service.tokenizer import GrammarTokenizer

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
    _ = tokenizer.llguidance, tokenizer.spaces
    artifact = decode(compiled.blob, SECRET, key=compiled.key, fingerprint=fingerprint)
    started = time.perf_counter()
    grammar = backend_named(artifact.header.backend).load(artifact.payload, tokenizer)
    loaded = time.perf_counter()
    _fill(grammar, tokenizer)
    filled = time.perf_counter()
    return Trial(
        header=artifact.header,
        artifact_bytes=len(compiled.blob),
        answer_ms=compiled.cost_ms,
        load_ms=(loaded - started) * 1000,
        mask_ms=(filled - loaded) * 1000,
        forced=ForcedPrefix(tokenizer).of(grammar),
    )


def _fill(grammar: CompiledGrammar, tokenizer: GrammarTokenizer) -> None:
    grammar.matcher(None, 0).fill(torch.zeros((1, (tokenizer.vocab_size + 31) // 32), dtype=torch.int32), 0)


async def _compiled(spec: GrammarSpec, tokenizer_path: str) -> tuple[Compiled, str]:
    """The artifact of the backend that serves the constraint in the long run, and the vocabulary's fingerprint."""
    cache = TieredCache(MemoryCache(MEMORY_BYTES), None)
    compiler = GrammarCompiler(tokenizer_path, None, DEADLINE_S, SandboxSettings(workers=1), cache, SECRET)
    try:
        await compiler.start()
        grammar = resolve(spec, Limits(), compiler.fingerprint)
        answer = await compiler.compile(replace(grammar.request(), stopgap=None))
        if isinstance(answer, Refusal):
            raise answer.error()
        return answer, compiler.fingerprint
    finally:
        await compiler.close()
