"""`python -m load_tests.first_answers schemastore`: how much longer the first answer to a schema takes than the second, at the HTTP port.

Schemas that people use, from a checkout of SchemaStore, in an order that chance gives, one after another, for one token each: what the
second answer does not wait for is to read and resolve the schema, and to compile and load its grammar. With the vocabulary of the real
model (49k), and with Mistral's tekken (131k) on a model of random weights. Schemas that are refused tell how long that takes.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console
from transformers import LlamaConfig

from deployments.commands.progress import CaseProgress
from deployments.config_model import SMOLLM2
from deployments.reporting.report import BenchReport, Row
from grammar_service.conformance.schemastore import Collected, read_schema, schema_files
from grammar_service.vocabulary.tekken import tekken_folder
from load_tests.first_answers.figures import REAL, TEKKEN, targets
from load_tests.reporting.running_service import PACKAGES, running_service

SEED = 44
TIMEOUT_S = 120.0


def main(
    folder: Annotated[Path, typer.Argument(help="a checkout of SchemaStore", exists=True, file_okay=False)],
    schemas: Annotated[int, typer.Option(min=10, help="that are asked for with each vocabulary")] = 200,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Measure first answers to schemas that people use."""
    chosen = list(_chosen(folder, schemas))
    rows: list[Row] = []
    with CaseProgress(Console(stderr=True)) as progress, tempfile.TemporaryDirectory() as made:
        models = {REAL: {"path": SMOLLM2}, TEKKEN: {"path": _tekken_model(Path(made)), "engine_args": {"load_format": "dummy"}}}
        for vocabulary, model in models.items():
            progress.say(f"{vocabulary}: starting")
            with running_service({"model": model}) as url:
                rows += [{"vocabulary": vocabulary, **row} for row in _asked(url, chosen)]
    report = BenchReport.here(f"python -m load_tests.first_answers {folder} --schemas {schemas}", PACKAGES, targets(rows), rows)
    raise typer.Exit(report.publish(Console(), json_out))


def _chosen(folder: Path, count: int) -> Iterator[Collected]:
    names = [file.stem for file in schema_files(folder)]
    random.Random(SEED).shuffle(names)
    read = (read_schema(folder, name) for name in names)
    yield from (schema for _, schema in zip(range(count), (schema for schema in read if schema.apart is None), strict=False))


def _tekken_model(folder: Path) -> str:
    shutil.copytree(tekken_folder(), folder, dirs_exist_ok=True)
    size = json.loads((folder / "config.json").read_text(encoding="utf-8"))["vocab_size"]
    small = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2}
    LlamaConfig(vocab_size=size, architectures=["LlamaForCausalLM"], max_position_embeddings=2048, **small).save_pretrained(folder)
    return str(folder)


def _asked(url: str, schemas: Sequence[Collected]) -> Iterator[Row]:
    with httpx.Client(base_url=url, timeout=TIMEOUT_S, trust_env=False) as client:
        model = client.get("/v1/models").json()["data"][0]["id"]
        _ask(client, model, {"type": "object", "properties": {"of": {"type": "string"}}})
        for schema in schemas:
            status, first_ms = _ask(client, model, schema.schema)
            second_ms = _ask(client, model, schema.schema)[1] if status == httpx.codes.OK else None
            size = len(json.dumps(schema.schema))
            yield {"schema": schema.name, "bytes": size, "status": status, "first_ms": round(first_ms, 1), "second_ms": second_ms}


def _ask(client: httpx.Client, model: str, schema: Any) -> tuple[int, float]:
    constraint = {"json": schema, "disable_additional_properties": False}
    body = {"model": model, "prompt": "An example: ", "max_tokens": 1, "structured_outputs": constraint}
    began = time.perf_counter()
    answer = client.post("/v1/completions", json=body)
    return answer.status_code, round((time.perf_counter() - began) * 1000, 1)


if __name__ == "__main__":
    typer.run(main)
