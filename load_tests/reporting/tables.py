"""Writes what benchmarks have found into README and docs/benchmarks: `python -m load_tests.reporting.tables`.

Each `load_tests/results/NAME.json` gets a page, which begins with `about/NAME.md` and shows `NAME.png`, where there are such files. The
README's block `<!-- bench: headline -->` gets the figures of `HEADLINE`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deployments.reporting.report import BenchReport, Target
from load_tests.errors import UnknownFigure
from load_tests.gpu import page as gpu
from load_tests.reporting.benchmarks import BENCHMARKS
from load_tests.reporting.markdown import holds, machine, table
from load_tests.reporting.pages import HISTORY, NOTE, pages

ROOT = Path(__file__).resolve().parents[2]
ABOUT = Path(__file__).parent / "about"
PAGES = "docs/benchmarks"
_BLOCK = re.compile(r"(<!-- bench: headline -->\n).*?(<!-- /bench -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Figure:
    """The target of that name in `load_tests/results/RESULT.json`; `says` is what it is in the README."""

    result: str
    target: str
    says: str


HEADLINE = (
    *(
        Figure(
            "real_model",
            f"{task}, 8 clients: requests a second, ours / stock",
            f"a real model, {says}, 8 clients: requests a second, ours / stock vLLM",
        )
        for task, says in (
            ("classification", "reviews into enums"),
            ("extraction", "fields of a text"),
            ("summary", "title and summary"),
            ("free", "no constraint"),
        )
    ),
    Figure(
        "front_door",
        "character, 32 streaming clients: requests a second, ours / stock",
        "a small model, character sheet as JSON, 32 clients: requests a second, ours / stock vLLM",
    ),
    Figure(
        "front_door",
        "worst workload, 32 and 64 streaming clients: p99 time to first token, ours / stock",
        "the worst of its workloads: p99 time to first token, ours / stock vLLM",
    ),
    Figure("conformance", "draft2020-12: invalid instances accepted", "JSON Schema test suite: invalid instances accepted"),
    Figure("grammar", "cold first mask on llguidance, p50", "a grammar nobody has asked for: median time to its first mask"),
    Figure(
        "tenants",
        "hostile grammars: light clients' p99 time to first token, beside / alone",
        "p99 time to first token beside a tenant with hostile grammars / alone",
    ),
    Figure("routing", "grammars resident on a replica, power of two / ours", "grammars that a replica holds, power of two / ours"),
    Figure("faults", "requests lost", "requests lost while each kind of process is killed, or suspended"),
    Figure(
        "mask_path",
        "a worker, forward to masked logits, stock by ours: 256 requests, K = 0",
        "masking 256 requests, a worker's time, stock / broadcaster",
    ),
)
"""What README shows, in this order. Those that are missed are shown as well."""


def headline(reports: Mapping[str, BenchReport], figures: Sequence[Figure] = HEADLINE) -> str:
    """The README's table; a figure whose result is not there is left out.

    Raises:
        UnknownFigure: a result has no such target.
    """
    shown = [(figure, reports[figure.result]) for figure in figures if figure.result in reports]
    machines = list(dict.fromkeys(machine(report) for _, report in shown))
    rows = [_cells(figure, report, chr(ord("A") + machines.index(machine(report)))) for figure, report in shown]
    legend = "; ".join(f"{chr(ord('A') + number)}: {name}" for number, name in enumerate(machines))
    promises = [target for report in reports.values() for target in report.targets]
    kept = sum(target.holds for target in promises)
    return "\n".join(
        [
            *table(["", "measured", "promised", "holds", "on", "command"], rows),
            "",
            f"{legend}. In all, {kept} of {len(promises)} promises are kept: [the others]({PAGES}/README.md#missed).",
        ]
    )


def refreshed(readme: str, block: str) -> str:
    """The text with `block` between the marks of the headline."""
    return _BLOCK.sub(lambda found: f"{found[1]}{block}\n{found[2]}", readme)


def _cells(figure: Figure, report: BenchReport, on: str) -> list[str]:
    target = _target(figure, report)
    command = f"[`{report.command.partition(' --')[0]}`]({PAGES}/{figure.result}.md)"
    return [figure.says, target.shown(), target.target, holds(target.holds), on, command]


def _target(figure: Figure, report: BenchReport) -> Target:
    for target in report.targets:
        if target.name == figure.target:
            return target
    names = ", ".join(repr(target.name) for target in report.targets)
    raise UnknownFigure(f"load_tests/results/{figure.result}.json has no target {figure.target!r}, only {names}")


def read_results(folder: Path) -> dict[str, BenchReport]:
    """In the order of `BENCHMARKS`, others last."""
    places = {name: place for place, name in enumerate(BENCHMARKS)}
    paths = sorted(folder.glob("*.json"), key=lambda path: (places.get(path.stem, len(places)), path.stem))
    return {path.stem: BenchReport.read(path) for path in paths}


def read_pages(results: Path) -> dict[str, str]:
    """The pages as they should be, by their file's name. Results of GPUs stand in a folder of their own, and on one page."""
    abouts = {path.stem: path.read_text(encoding="utf-8") for path in ABOUT.glob("*.md")}
    reports = read_results(results)
    retired = {path.name: _title(path) for path in sorted((ROOT / PAGES / HISTORY).glob("*.md"))}
    found = pages(reports, abouts, {path.stem for path in results.glob("*.png")}, retired)
    return {**found, gpu.NAME: f"{NOTE}\n{gpu.page(read_results(results / 'gpu'), reports.get(gpu.OVERLAP))}"}


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--pages", type=Path, default=ROOT / PAGES)
    parser.add_argument("--results", type=Path, default=ROOT / "load_tests" / "results")
    given = parser.parse_args(arguments)
    given.readme.write_text(refreshed(given.readme.read_text(encoding="utf-8"), headline(read_results(given.results))), encoding="utf-8")
    write_pages(given.pages, read_pages(given.results))
    print(f"{given.readme} and the pages in {given.pages} are those of {given.results}")


def write_pages(folder: Path, wanted: Mapping[str, str]) -> None:
    """Writes them whole; a page whose result is gone goes as well."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in {path.name for path in folder.glob("*.md")} - set(wanted):
        (folder / stale).unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
