"""One page for each result: what was measured, the promises, and the figures behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from deployments.commands import ablation, simulation
from deployments.reporting.report import BenchReport, Row
from load_tests.canonical import tables as canonical
from load_tests.drafts import figures as drafts
from load_tests.first_answers import figures as first_answers
from load_tests.front_door import table as front_door
from load_tests.front_door.handle.figures import BATCH, BATCH_CLIENTS, CLIENTS, HANDLE, HTTP, RESPONSES
from load_tests.lookahead import beside_paper
from load_tests.lookahead import tables as lookahead
from load_tests.lookahead.served import figures as engines
from load_tests.masks import figures as mask_figures
from load_tests.overlap import figures as overlap
from load_tests.real_model import confidence
from load_tests.real_model import figures as real_model
from load_tests.reporting.markdown import kept, machine, measured_at, ran, table, target_table

OUTCOMES = ("correct", "refused", "over-constrained", "under-constrained")
_COUNTS = (
    "schemas",
    "served",
    "valid",
    "valid_accepted",
    "valid_reordered",
    "invalid",
    "invalid_rejected",
    "invalid_accepted",
    "correct",
)
_COUNTED = ("letters", "accepted", "answered", "failed", "connections_struck", "lost", "refused_connections")
_AGAIN = ("back_s", "settled_s")
NOTE = "<!-- Written by `python -m load_tests.reporting.tables` from load_tests/results and load_tests/reporting/about. -->"
RESULTS = "../../load_tests/results"
"""As a page links to it."""
INDEX = "README.md"
HISTORY = "history"
"""The folder with the last pages of benchmarks that are retired."""


def pages(
    reports: Mapping[str, BenchReport], abouts: Mapping[str, str], pictures: Collection[str], retired: Mapping[str, str] | None = None
) -> dict[str, str]:
    """All files of `docs/benchmarks`. `abouts`: how the page of a result begins, with its title; one without has a title all the same.
    `pictures` names the results that have one. `retired`: titles by the files of `HISTORY`, which are listed."""
    heads = {name: abouts.get(name, f"# {name.replace('_', ' ').capitalize()}\n").rstrip("\n") for name in reports}
    titles = {name: head.splitlines()[0].removeprefix("# ") for name, head in heads.items()}
    found = {INDEX: _index(reports, titles, retired or {})}
    for name, report in reports.items():
        picture = [f"![{titles[name]}]({RESULTS}/{name}.png)", ""] if name in pictures else []
        found[f"{name}.md"] = "\n".join(
            [NOTE, heads[name], "", *picture, ran(report), "", *target_table(report), *_MORE.get(name, _nothing)(report), ""]
        )
    return found


def _index(reports: Mapping[str, BenchReport], titles: Mapping[str, str], retired: Mapping[str, str]) -> str:
    """Every page, how many of its promises are kept, and the ones that are not."""
    rows = [[f"[{titles[name]}]({name}.md)", kept(report), machine(report), measured_at(report)] for name, report in reports.items()]
    missed = [
        f"- [{titles[name]}]({name}.md): {target.name}: {target.shown()}, promised {target.target}"
        for name, report in reports.items()
        for target in report.targets
        if not target.holds
    ]
    about = (
        "What was measured, each by the command that its page names. `make bench` runs those that are older than the code they measure "
        "(`load_tests/reporting/benchmarks.py` lists that code), and writes these pages anew. [What a GPU shows](gpu.md) has a page "
        "of its own."
    )
    heads = ["benchmark", "promises kept", "on", "measured"]
    history = [f"- [{title}]({HISTORY}/{name})" for name, title in retired.items()]
    return "\n".join(
        [
            *(NOTE, "# Benchmarks", "", about, "", *table(heads, rows), "", "## Missed", "", *(missed or ["None."])),
            *("", "## Retired", "", "The last figures of benchmarks whose question is answered:", "", *(history or ["None."]), ""),
        ]
    )


def _nothing(_: BenchReport) -> list[str]:
    return []


def _conformance(report: BenchReport) -> list[str]:
    """Of each draft, the ways and the keywords; results without drafts have one of each."""
    drafts = list(dict.fromkeys(row.get("draft") for row in report.rows))
    return [line for draft in drafts for line in _of_draft(draft, [row for row in report.rows if row.get("draft") == draft])]


def _of_draft(draft: object, rows: Sequence[Row]) -> list[str]:
    ways = [[str(row["way"]), str(row["cases"]), *(str(row[name]) for name in OUTCOMES)] for row in rows if "way" in row]
    words = [
        [str(row["keyword"]), f"{row['refused_schemas']} of {row['schemas']}", str(row["cases"]), *(str(row[name]) for name in OUTCOMES)]
        for row in rows
        if "schemas" in row and "keyword" in row
    ]
    head = [] if draft is None else ["", f"## {draft}"]
    by_keyword = table(["keyword", "schemas refused", "cases", *OUTCOMES], words)
    return [*head, "", *table(["all cases", "cases", *OUTCOMES], ways), "", *by_keyword]


def _collection(report: BenchReport) -> list[str]:
    ways = [[str(row["way"]), *(f"{row[name]:,}" for name in _COUNTS)] for row in report.rows if "way" in row]
    heads = ["", "schemas", "served", "valid", "accepted", "reordered", "invalid", "rejected", "accepted", "correct"]
    apart = [[f"set apart: {row['apart']}", str(row["schemas"])] for row in report.rows if "apart" in row]
    apart += [[f"no schema {row['no_schema']} (counted all the same)", str(row["schemas"])] for row in report.rows if "no_schema" in row]
    known = [[str(row["well_known"]), str(row["served"]), str(row["because"])] for row in report.rows if "well_known" in row]
    causes, unchecked = (
        [[str(row[kind]), str(row["schemas"]), str(row["example"])] for row in report.rows if kind in row]
        for kind in ("cause", "cause_with_check")
    )
    kinds = [
        [str(row["otherwise"]), "valid, rejected" if row["valid"] else "invalid, accepted", str(row["explanation"]), str(row["instances"])]
        for row in report.rows
        if "otherwise" in row
    ]
    let_through = [[str(row["instance"]), str(row["explanation"])] for row in report.rows if "instance" in row and not row["valid"]]
    return [
        *["", *table(heads, ways), "", *table(["schemas", ""], apart)],
        *(["", "## By name", "", *table(["schema", "served", "else"], known)] if known else []),
        *["", "## Why schemas are refused", "", *table(["cause", "schemas", "for example"], causes)],
        *(["", "Of these, with `unenforceable: check`:", "", *table(["cause", "schemas", "for example"], unchecked)] if unchecked else []),
        *["", "## Judged otherwise than kept", "", *table(["", "", "because", "instances"], kinds)],
        *(["", "Invalid ones that the service accepts:", "", *table(["instance", "because"], let_through)] if let_through else []),
    ]


def _simulation(report: BenchReport) -> list[str]:
    rows = [[str(row["scenario"]), str(row["policy"]), *simulation.cells(row)] for row in report.rows]
    return ["", *table(["", "", *simulation.FIGURES], rows)]


def _ablation(report: BenchReport) -> list[str]:
    found: list[str] = []
    averaged = list(ablation.averaged(report.rows))
    for scenario in dict.fromkeys(one.scenario for one in averaged):
        rows = [[one.without, *one.cells, _how_often(one.broken, f"{scenario}: ")] for one in averaged if one.scenario == scenario]
        found += ["", f"## {scenario}", "", *table(["without", *ablation.FIGURES, "broken promises"], rows)]
    return found


def _how_often(names: Sequence[str], prefix: str) -> str:
    """Each name once, and how often it is there."""
    return "; ".join(f"{name.removeprefix(prefix)} ({count} ×)" for name, count in Counter(names).items())


def _mask_path(report: BenchReport) -> list[str]:
    return ["", *table(mask_figures.HEADINGS, [mask_figures.cells(*pair) for pair in mask_figures.pairs(report.rows)])]


def _real_model(report: BenchReport) -> list[str]:
    speed = [row for row in report.rows if row["kind"] == "speed"]
    worth = table(real_model.WORTH_HEADINGS, real_model.worth_lines(report.rows))
    return ["", *table(front_door.headings(), front_door.lines(speed)), "", "## What the answers are worth", "", *worth]


def _first_answers(report: BenchReport) -> list[str]:
    slowest = table(first_answers.SLOWEST_HEADINGS, first_answers.slowest(report.rows))
    return ["", *table(first_answers.HEADINGS, first_answers.lines(report.rows)), "", "The slowest:", "", *slowest]


def _drafts(report: BenchReport) -> list[str]:
    accepted = table(drafts.ACCEPTED_HEADINGS, drafts.accepted_lines(report.rows))
    return ["", *table(drafts.HEADINGS, drafts.lines(report.rows)), "", *accepted]


def _confidence(report: BenchReport) -> list[str]:
    return ["", *table(confidence.HEADINGS, confidence.lines(report.rows))]


def _front_door(report: BenchReport) -> list[str]:
    return ["", *table(front_door.headings(), front_door.lines(report.rows))]


def _front_door_handle(report: BenchReport) -> list[str]:
    others = [row for row in report.rows if row["clients"] in CLIENTS]
    handle = table(front_door.headings("handle / HTTP"), front_door.lines(others, HTTP, HANDLE))
    responses = table(front_door.headings("Responses / chat"), front_door.lines(others, HTTP, RESPONSES))
    batch = table(front_door.headings("batch / HTTP"), front_door.lines(_of_batches(report.rows), HTTP, BATCH))
    return [
        *("", *handle, "", "## The Responses API, against chat completions", "", *responses),
        *("", "## `maskcast batch`, against clients in a closed loop", "", *batch),
    ]


def _of_batches(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["clients"] == BATCH_CLIENTS]


def _lookahead(report: BenchReport) -> list[str]:
    on_engines = engines.served_rows(report.rows)
    rows = [row for row in report.rows if row not in on_engines]
    own = table(lookahead.HEADINGS, [lookahead.cells(row) for row in rows])
    beside = table(beside_paper.HEADINGS, [pair.cells() for pair in beside_paper.pairs(rows)])
    times = table(engines.time_headings(), engines.time_lines(on_engines))
    texts = table(engines.TEXT_HEADINGS, engines.text_lines(on_engines))
    return [
        *["", *own, "", "## Beside the paper's models", "", "Percent of texts that are satisfied, and speed-ups over CDLH:", "", *beside],
        *["", "## On engines", "", "Time for a token, so many answers at once:", "", *times],
        *["", "All texts, by all methods, with drafts discarded and kept:", "", *texts],
    ]


def _faults(report: BenchReport) -> list[str]:
    heads = ["", *(name.replace("_", " ") for name in _COUNTED), "answered again after", "whole again after"]
    rows = [
        [row["strike"], *(str(row[name]) for name in _COUNTED), *("never" if row[at] is None else f"{row[at]} s" for at in _AGAIN)]
        for row in report.rows
        if "lost" in row
    ]
    where = [
        f"Of the restart's seconds, by part: {', '.join(f'{part} {seconds}' for part, seconds in row['restart_s'].items())}."
        for row in report.rows
        if "restart_s" in row
    ]
    left_out = [f"- {row['strike']}: left out here: {row['skipped']}" for row in report.rows if "skipped" in row]
    return ["", *table(heads, rows), *(["", *where] if where else []), *(["", *left_out] if left_out else [])]


def _soak(report: BenchReport) -> list[str]:
    rows = [
        [
            str(row["series"]),
            f"{row['level']:,.5g}",
            f"{row['slope']:+.3g}",
            f"{row['low']:+.3g} to {row['high']:+.3g}",
            f"{row['noise']:g}",
        ]
        for row in report.rows
        if "series" in row
    ]
    (ended,) = [row for row in report.rows if "requests" in row]
    said = f"Of {ended['requests']:,} requests: " + ", ".join(f"{count:,} {how}" for how, count in ended.items() if how != "requests")
    return ["", f"{said}.", "", *table(["", "level", "more in 1,000 requests", "interval", "noise"], rows)]


def _canonical(report: BenchReport) -> list[str]:
    found = canonical.tables(report.rows)
    return [line for title, headings, lines in found for line in ("", f"## {title}", "", *table(headings, lines))]


def _overlap(report: BenchReport) -> list[str]:
    rows = report.rows
    measured, rule = table(overlap.HEADINGS, overlap.cells(rows)), table(overlap.rule_headings(rows), overlap.rule_cells(rows))
    return ["", *measured, "", "## For which forwards", "", *overlap.RULE, "", *rule]


def _tokenizers(report: BenchReport) -> list[str]:
    judged = ("valid", "invalid", "cut", "refused")
    rows = [
        [row["kind"], f"`{row['parser']}`", asked, *(str(row[asked].get(how, 0)) for how in judged)]
        for row in report.rows
        for asked in ("schemas", "tools")
    ]
    return ["", *table(["tokenizer", "tool calls by", "under", *judged], rows)]


_MORE: Mapping[str, Callable[[BenchReport], list[str]]] = {
    "real_model": _real_model,
    "confidence": _confidence,
    "drafts": _drafts,
    "first_answers": _first_answers,
    "ablation": _ablation,
    "canonical": _canonical,
    "conformance": _conformance,
    "conformance_schemastore": _collection,
    "simulation": _simulation,
    "faults": _faults,
    "soak": _soak,
    "front_door": _front_door,
    "front_door_handle": _front_door_handle,
    "vllm_client": _front_door,
    "lookahead": _lookahead,
    "mask_path": _mask_path,
    "overlap": _overlap,
    "tokenizers": _tokenizers,
}
"""Tables after that of the promises, from the rows of a result."""
