from __future__ import annotations

import pytest

from grammar_service.backends import backend_named, select_backend
from grammar_service.forced_prefix import ForcedPrefix
from grammar_service.spec import COMPACT, STANDARD, GrammarKind, GrammarSpec
from grammar_service.tokenizer import GrammarTokenizer


def forced(spec: GrammarSpec, tokenizer: GrammarTokenizer, most_bytes: int = 4096) -> bytes:
    backend = backend_named(select_backend(spec).name)
    return ForcedPrefix(tokenizer).of(backend.load(backend.compile(spec, tokenizer).data, tokenizer), most_bytes)


@pytest.mark.parametrize(
    ("kind", "text", "whitespace", "prefix"),
    [
        (GrammarKind.JSON_SCHEMA, '{"properties": {"name": {"type": "string"}}, "required": ["name"]}', STANDARD, b'{"name": "'),
        (GrammarKind.JSON_SCHEMA, '{"properties": {"name": {"type": "string"}}, "required": ["name"]}', COMPACT, b'{"name":"'),
        (GrammarKind.JSON_SCHEMA, '{"properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}', STANDARD, b'{"ok": '),
        (GrammarKind.JSON_SCHEMA, '{"properties": {"name": {"type": "string"}}}', STANDARD, b"{"),
        (GrammarKind.JSON_SCHEMA, '{"type": ["integer", "boolean"]}', STANDARD, b""),
        (GrammarKind.CHOICE, '["red", "rest"]', STANDARD, b"re"),
        (GrammarKind.CHOICE, '["only"]', STANDARD, b"only"),
        (GrammarKind.CHOICE, '["re", "red"]', STANDARD, b"re"),
        (GrammarKind.LARK, 'start: "abc" /[0-9]/', STANDARD, b"abc"),
        (GrammarKind.CHOICE, '["ümlaut", "über"]', STANDARD, "ü".encode()),
    ],
)
def test_the_forced_start_is_what_every_text_begins_with(
    kind: GrammarKind, text: str, whitespace: str, prefix: bytes, tokenizer: GrammarTokenizer
) -> None:
    assert forced(GrammarSpec(kind, text, whitespace), tokenizer) == prefix


def test_a_long_forced_start_is_cut(tokenizer: GrammarTokenizer) -> None:
    spec = GrammarSpec(GrammarKind.CHOICE, f'["{"a" * 300}"]')
    assert forced(spec, tokenizer, most_bytes=100) == b"a" * 100
