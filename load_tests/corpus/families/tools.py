"""Tool calls: the schema of a chosen tool, of any of twenty, and structural tags in which calls stand in free text."""

from __future__ import annotations

import json
from typing import Any

from load_tests.corpus.families.building import Schema, flag, formatted, many, number, one_of, record, spelled, text, unspelled, whole


def tools() -> dict[str, Schema]:
    """Schemas by name; those whose type is `structural_tag` are structural tags."""
    known = _tools()
    one = {"calendar_create": known["calendar_create"]}
    few = {name: known[name] for name in ("weather_get", "web_search", "calculator", "mail_send", "calendar_create")}
    return {
        "tool_arguments": known["calendar_create"],
        "tool_calls_20": _calls(known),
        "tool_tag_1": _tag(one),
        "tool_tag_5": _tag(few),
        "tool_tag_20": _tag(known),
        "tool_tag_20_wide": _tag({name: _with_context(schema) for name, schema in known.items()}),
    }


def _calls(offered: dict[str, Schema]) -> Schema:
    return many({"anyOf": [record({"name": {"const": name}, "parameters": schema}) for name, schema in offered.items()]}, 1)


def _tag(offered: dict[str, Schema]) -> dict[str, Any]:
    tags = [
        {
            "type": "tag",
            "begin": f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": ',
            "content": {"type": "json_schema", "json_schema": unspelled(schema)},
            "end": "}\n</tool_call>",
        }
        for name, schema in offered.items()
    ]
    return {"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": tags}}


def _with_context(schema: Schema) -> Schema:
    """The same arguments and who asks for what, as agents pass it along."""
    context = {
        "reason": text(),
        "step": whole(1, 99),
        "confidence": one_of(["low", "medium", "high"]),
        "retry": flag(),
        "session": text(12),
    }
    return {**schema, "properties": {**schema["properties"], **context}}


def _tools() -> dict[str, Schema]:
    return {**_office_tools(), **_data_tools()}


def _office_tools() -> dict[str, Schema]:
    attachment = record({"name": text(), "uri": formatted("uri")})
    return {
        "calendar_create": record(
            {"title": text(), "starts": formatted("date-time"), "ends": formatted("date-time")},
            {"place": text(), "guests": many(formatted("email")), "remind_minutes": many(whole(0, 10080)), "private": flag()},
        ),
        "calendar_list": record({"from": formatted("date"), "to": formatted("date")}, {"limit": whole(1, 500)}),
        "mail_send": record(
            {"to": many(formatted("email"), 1), "subject": text(), "body": text()},
            {"cc": many(formatted("email")), "attachments": many(attachment), "priority": one_of(["low", "normal", "high"])},
        ),
        "mail_search": record({"query": text()}, {"folder": text(), "since": formatted("date"), "unread": flag(), "limit": whole(1, 100)}),
        "task_add": record({"text": text()}, {"due": formatted("date"), "project": text(), "tags": many(text())}),
        "task_done": record({"id": whole(1)}),
        "note_write": record({"title": text(), "markdown": text()}, {"folder": text()}),
        "contact_find": record({"name": text()}, {"company": text(), "city": text()}),
        "document_translate": record({"text": text(), "to": spelled("^[a-z]{2}$")}, {"from": spelled("^[a-z]{2}$"), "formal": flag()}),
        "invoice_pay": record(
            {"number": text(), "amount": number(0), "account": spelled("^[A-Z]{2}[0-9]{20}$")}, {"on": formatted("date")}
        ),
    }


def _data_tools() -> dict[str, Schema]:
    place = {"anyOf": [record({"city": text()}), record({"latitude": number(-90, 90), "longitude": number(-180, 180)})]}
    order = record({"column": text(), "direction": one_of(["asc", "desc"])})
    return {
        "weather_get": record({"place": place}, {"days": whole(1, 14), "units": one_of(["metric", "imperial"])}),
        "web_search": record({"query": text()}, {"count": whole(1, 50), "site": text(), "recent_days": whole(1, 365)}),
        "web_open": record({"uri": formatted("uri")}, {"as_text": flag()}),
        "calculator": record({"expression": text()}),
        "table_query": record(
            {"table": text(), "columns": many(text(), 1)},
            {"where": many(record({"column": text(), "test": one_of(["=", "<", ">", "like"]), "value": text()})), "order": many(order)},
        ),
        "file_read": record({"path": text()}, {"first_line": whole(1), "last_line": whole(1)}),
        "file_write": record({"path": text(), "content": text()}, {"append": flag()}),
        "command_run": record({"command": many(text(), 1)}, {"folder": text(), "timeout_s": number(0, 3600), "input": text()}),
        "image_make": record({"prompt": text()}, {"width": whole(64, 2048), "height": whole(64, 2048), "seed": whole(0), "style": text()}),
        "chart_draw": record(
            {"kind": one_of(["bar", "line", "pie"]), "labels": many(text(), 1), "values": many(number(), 1)}, {"title": text()}
        ),
    }
