"""The docs' page of request fields: `python -m deployments.api.request_fields.page` writes it."""

from __future__ import annotations

from pathlib import Path

from deployments.api.request_fields.table import FIELDS, RequestField, Treatment
from model_service.messages import GENERATING, Endpoint

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "request-fields.md"
HEAD = """# Request fields

<!-- written by `python -m deployments.api.request_fields.page` -->

Every field that a request may have, its type and its bounds. The engine gets the forwarded fields and nothing else. A value of another type
or beyond a bound is a 400 that names the field, with the code `over_limit` where it is too large or too long. `null` is as if the field
were not there. `limits.…` and `model.…` are [settings](settings.md); an [API key](keys.md) may have narrower bounds. "chat" is
`/v1/chat/completions`, "completions" is `/v1/completions`, and "both" is these two.
"""
_OF = {Endpoint.CHAT: "chat", Endpoint.COMPLETION: "completions", Endpoint.TOKENIZE: "`/tokenize`", Endpoint.DETOKENIZE: "`/detokenize`"}
SECTIONS = {
    Treatment.FORWARDED: ("Forwarded to the engine", "field | of | type and bounds | needs"),
    Treatment.READ: ("Read by Maskcast", "field | of | type | needs"),
    Treatment.SILENT: ("Accepted, without effect", "field | of"),
    Treatment.WARNED: ("Ignored with a warning", "field | of | why"),
    Treatment.REFUSED: ("Refused with a 400", "field | of | why"),
}
TAIL = """
All other fields are ignored with the [warning](constraints.md#warnings) `unknown_field`, which names the field that was probably meant; but
an unknown field whose name begins with `guided_` is a 400, since it was meant as a constraint.
"""


def page() -> str:
    return HEAD + "".join(_section(treatment) for treatment in SECTIONS) + TAIL


def _section(treatment: Treatment) -> str:
    title, columns = SECTIONS[treatment]
    rows = [_row(row, columns.count("|") + 1) for row in FIELDS if row.treatment is treatment]
    return "\n".join(["", f"## {title}", "", f"| {columns} |", "|---" * (columns.count("|") + 1) + "|", *rows, ""])


def _row(row: RequestField, columns: int) -> str:
    of = "both" if row.endpoints == GENERATING else ", ".join(_OF[endpoint] for endpoint in row.endpoints)
    told = (row.note,) if columns == 3 else (row.kind.describe(), row.note)
    return f"| {' | '.join((f'`{row.name}`', of, *told)[:columns])} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
