"""`python -m load_tests.masks.sizes`: what the masks of an engine step weigh, as bitmask rows and as frames.

Grammars are those of `load_tests/corpus/schemas` on the Tekken vocabulary, compiled by the backend that serves them; requests walk
through them (`walks.py`), each from a place of its own, as in continuous batching. With K drafts a request has the masks of its next
K + 1 tokens.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
import typer
from rich.console import Console
from rich.table import Table

from deployments.reporting.quantiles import quantile
from deployments.reporting.report import BenchReport, Row, Target
from grammar_service.vocabulary.tekken import tekken_folder
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.errors import BenchFailed
from load_tests.masks.scenarios import ALL, ONE, SOME, Compiler, ahead, chosen_cases, scenarios
from load_tests.masks.walks import SeenRows, Typist
from model_service.masks.frames.encoding import encode
from model_service.masks.frames.frame import Frame, decode
from model_service.masks.frames.header import FREE

PACKAGES = ("maskcast", "xgrammar", "llguidance", "mistral_common", "numpy")
SEED = 5
LONGEST_SKIP = 96
"""Tokens of its answer that a request may have behind it at the first step."""
STRIDE = 4
"""Engine steps from one that is looked at to the next."""
WORKERS, REMOTE, STEPS_PER_S = 8, 4, 50
"""Of an engine on two nodes: its workers, those of them on the node where no masks are filled, and its steps."""
TARGETS = ((ONE, False, 12), (SOME, False, 4), (ALL, False, 2), (ONE, True, 20), (SOME, True, 20), (ALL, True, 20))
"""Scenario, whether there are drafts, and how many times fewer bytes."""


def main(
    requests: Annotated[int, typer.Option(min=1, help="structured requests in a step")] = 256,
    steps: Annotated[int, typer.Option(min=1, help="steps that are looked at in each scenario")] = 8,
    drafts: Annotated[int, typer.Option(min=1, help="K of the runs with drafts")] = 8,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Compare the bytes of a step's masks with those of its frame."""
    measured = _measured(requests, steps, drafts)
    in_all = summary(measured, drafts)
    command = f"python -m load_tests.masks.sizes --requests {requests} --steps {steps} --drafts {drafts}"
    report = BenchReport.here(command, PACKAGES, _targets(in_all, drafts), [*in_all, *measured])
    console = Console()
    console.print(_table(in_all))
    raise typer.Exit(report.publish(console, json_out))


def _measured(requests: int, steps: int, drafts: int) -> list[Row]:
    tokenizer = GrammarTokenizer.load(tekken_folder())
    cases, chance, seen = chosen_cases(), Random(SEED), SeenRows(tokenizer.vocab_size)
    typist = Typist(tokenizer, [json.dumps(json.loads(case.spec.text)) for case in cases], seen, chance)
    rows: list[Row] = []
    for scenario in scenarios(cases, requests, Compiler(tokenizer)):
        walks = [typist.walk(grammar, chance.randrange(LONGEST_SKIP), steps * STRIDE + drafts) for grammar in scenario.grammars]
        for drafted in (0, drafts):
            for step in range(steps):
                weighed = _weighed(seen, [number for walk in walks for number in ahead(walk, step * STRIDE, drafted)])
                rows.append({"scenario": scenario.name, "schema": scenario.schema, "drafts": drafted, "step": step, **weighed})
    return rows


def _weighed(seen: SeenRows, numbers: Sequence[int]) -> dict[str, Any]:
    """The step's rows as a frame. Raises BenchFailed: the frame does not say the same."""
    matrix = seen.matrix(numbers)
    data = encode(matrix, seen.vocab_size)
    frame = decode(data)
    _check(frame, matrix, numbers)
    header = frame.header
    return {
        "rows": len(matrix),
        "distinct_rows": len(set(numbers)),
        "forced_rows": int((frame.index < FREE).sum()),
        "lists_of_allowed": header.allowed,
        "lists_of_forbidden": header.forbidden,
        "lists_of_changes": header.changed,
        "packed_rows": header.rows,
        "naive_bytes": header.naive_bytes,
        "frame_bytes": len(data),
    }


def _check(frame: Frame, matrix: npt.NDArray[np.int32], numbers: Sequence[int]) -> None:
    """Equal rows must be equal in the frame, and each of the different ones must mask as it says."""
    _, first, same = np.unique(numbers, return_index=True, return_inverse=True)
    alike = np.array_equal(frame.index[first][same], frame.index)
    for places in np.array_split(first, len(first) // 64 + 1):
        logits = torch.zeros(len(places), frame.header.vocab_size)
        frame.arranged(places).apply(logits)
        bits = np.unpackbits(matrix[places].view(np.uint8), axis=1, bitorder="little", count=frame.header.vocab_size)
        alike = alike and bool(torch.equal(logits == 0, torch.from_numpy(bits == 1)))
    if not alike:
        raise BenchFailed("a frame does not mask as the rows that it was made of")


def summary(measured: Sequence[Row], drafts: int) -> list[Row]:
    """For each scenario, with `part` "summary", the median step and what it comes to on two nodes; of single schemas the one that gains
    least."""
    found: list[Row] = []
    for scenario in (ONE, SOME, ALL):
        for drafted in (0, drafts):
            own = [row for row in measured if row["scenario"] == scenario and row["drafts"] == drafted]
            of_schema = [_median_step([row for row in own if row["schema"] == schema]) for schema in {row["schema"]: None for row in own}]
            least = min(of_schema, key=lambda row: row["ratio"])
            found.append({"part": "summary", "scenario": scenario, "drafts": drafted, **least, **_on_two_nodes(least)})
    return found


def _median_step(steps: Sequence[Row]) -> dict[str, Any]:
    """`ratio_unforced`: the rows of forced tokens, which cost a frame next to nothing, are not counted for the naive side either."""
    names = ("rows", "distinct_rows", "forced_rows", "naive_bytes", "frame_bytes")
    medians = {name: quantile([row[name] for row in steps], 0.5) for name in names}
    ratios = [row["naive_bytes"] / row["frame_bytes"] for row in steps]
    unforced = [ratio * (1 - row["forced_rows"] / row["rows"]) for ratio, row in zip(ratios, steps, strict=True)]
    return {"schema": steps[0]["schema"], **medians, "ratio": quantile(ratios, 0.5), "ratio_unforced": quantile(unforced, 0.5)}


def _on_two_nodes(step: Row) -> dict[str, Any]:
    """`handed_out_bytes`: a step's, by the process that fills the masks: rows go to each worker; a frame once to its own node's, and to
    each of the others. `network_mb_s`: from node to node."""
    naive, frame = step["naive_bytes"], step["frame_bytes"]
    return {
        "naive_handed_out_bytes": naive * WORKERS,
        "frame_handed_out_bytes": frame * (1 + REMOTE),
        "naive_network_mb_s": naive * REMOTE * STEPS_PER_S / 1e6,
        "frame_network_mb_s": frame * REMOTE * STEPS_PER_S / 1e6,
    }


def _targets(in_all: Sequence[Row], drafts: int) -> list[Target]:
    found = {(row["scenario"], row["drafts"]): row["ratio"] for row in in_all}
    return [
        Target.at_least(f"mask bytes a step, rows to frame: {scenario}, K = {k}", found[scenario, k], bound, "×")
        for scenario, drafted, bound in TARGETS
        for k in [drafts if drafted else 0]
    ]


def cells(row: Row) -> list[str]:
    """A summary row as it is shown, see `HEADINGS`."""
    sizes = [f"{row[name] / 1024:,.0f} KiB" for name in ("naive_bytes", "frame_bytes")]
    written = [f"{row[name] / 2**20:,.1f} MiB" for name in ("naive_handed_out_bytes", "frame_handed_out_bytes")]
    network = [f"{row[name]:,.0f} MB/s" for name in ("naive_network_mb_s", "frame_network_mb_s")]
    ratios = [f"{row[name]:.1f}×" for name in ("ratio", "ratio_unforced")]
    return [row["scenario"], str(row["drafts"]), *(" → ".join(pair) for pair in (sizes, written, network)), *ratios]


HEADINGS = ("masks", "K", "a worker and step", "handed out a step", "from node to node", "ratio", "ratio without forced rows")


def _table(rows: Sequence[Row]) -> Table:
    table = Table(title=f"{WORKERS} workers on two nodes, {STEPS_PER_S} steps a second: rows → frame", title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading)
    for row in rows:
        table.add_row(*cells(row))
    return table


if __name__ == "__main__":
    typer.run(main)
