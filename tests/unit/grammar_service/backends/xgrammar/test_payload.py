"""Tables and recipes are two forms of one grammar."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
import torch
import xgrammar
from hypothesis import given
from hypothesis import strategies as st

from grammar_service.backends import CompiledGrammar
from grammar_service.backends.xgrammar.backend import XgrammarBackend
from grammar_service.backends.xgrammar.payload import XgrammarPayload, read_payload, write_payload
from grammar_service.backends.xgrammar.recipe import compiled, recipe_of
from grammar_service.backends.xgrammar.tables import shape_of
from grammar_service.errors import ArtifactError
from grammar_service.packing import pack, unpack
from grammar_service.spec import FLEXIBLE, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed, schema_spec
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE

INTEGER = {"type": "integer"}
NODE = {"type": "object", "properties": {"v": INTEGER, "n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}
TAG = {
    "type": "structural_tag",
    "format": {"type": "tag", "begin": "<t>", "content": {"type": "json_schema", "json_schema": INTEGER}, "end": "</t>"},
}
WIDE = {f"field_{i}": {"type": kind} for i, kind in enumerate(["string", "integer", "number", "boolean"] * 10)}
SPECS = {
    "schema": schema_spec({"$defs": {"n": NODE}, "$ref": "#/$defs/n"}),
    "flexible": schema_spec({"type": "object", "properties": WIDE}, FLEXIBLE),
    "wide": schema_spec({"type": "object", "properties": WIDE}),
    "object": GrammarSpec(GrammarKind.JSON_OBJECT, ""),
    "regex": GrammarSpec(GrammarKind.REGEX, "[a-f]{2,5}(é|x)*"),
    "choice": GrammarSpec(GrammarKind.CHOICE, json.dumps(["yes", "no", "né\n"])),
    "ebnf": GrammarSpec(GrammarKind.EBNF, 'root ::= "a" root "b" | "c"'),
    "tag": GrammarSpec(GrammarKind.STRUCTURAL_TAG, json.dumps(TAG)),
}


@pytest.fixture(scope="module", params=SPECS)
def spec(request: pytest.FixtureRequest) -> GrammarSpec:
    return SPECS[request.param]


@pytest.fixture(scope="module")
def backend() -> XgrammarBackend:
    return XgrammarBackend()


def serialized(spec: GrammarSpec, tokenizer: GrammarTokenizer) -> str:
    return compiled(recipe_of(spec), xgrammar.GrammarCompiler(tokenizer.xgrammar)).serialize_json()


def as_recipe(spec: GrammarSpec, backend: XgrammarBackend) -> bytes:
    return write_payload(backend.version, recipe_of(spec), None, 0)


def as_tables(spec: GrammarSpec, backend: XgrammarBackend, tokenizer: GrammarTokenizer) -> bytes:
    return write_payload(backend.version, recipe_of(spec), serialized(spec, tokenizer), 0)


def walk(grammars: list[CompiledGrammar], seed: int) -> None:
    """One random text on all of them: at every step they allow the same tokens."""
    choose = random.Random(seed)
    matchers = [grammar.matcher(None, 0) for grammar in grammars]
    for _ in range(25):
        first, *others = (allowed(matcher, VOCAB_SIZE) for matcher in matchers)
        assert all(other == first for other in others)
        if not first:
            return
        token = choose.choice(sorted(first))
        assert all(matcher.accept(token) for matcher in matchers)


def test_both_forms_allow_the_same_tokens(spec: GrammarSpec, backend: XgrammarBackend, tokenizer: GrammarTokenizer) -> None:
    forms = [as_recipe(spec, backend), as_tables(spec, backend, tokenizer), backend.compile(spec, tokenizer).data]
    grammars = [backend.load(data, tokenizer) for data in forms]
    for seed in range(5):
        walk(grammars, seed)


def test_a_payload_tells_its_costs(spec: GrammarSpec, tokenizer: GrammarTokenizer) -> None:
    payload = XgrammarBackend().compile(spec, tokenizer)
    held = read_payload(payload.data, XgrammarBackend().version)
    assert payload.compile_ms > 0
    assert 0 < payload.load_ms <= payload.compile_ms
    assert payload.expanded_bytes == (0 if held.tables is None else len(unpack(held.tables, 1 << 30).encode()))


def test_tables_over_the_bound_are_never_written(spec: GrammarSpec, tokenizer: GrammarTokenizer) -> None:
    payload = XgrammarBackend(max_expanded_bytes=200).compile(spec, tokenizer)
    assert payload.expanded_bytes == 0
    assert payload.load_ms == payload.compile_ms
    assert read_payload(payload.data, XgrammarBackend().version).tables is None


def test_tables_over_the_readers_bound_are_refused(backend: XgrammarBackend, tokenizer: GrammarTokenizer) -> None:
    with pytest.raises(ArtifactError, match="limit"):
        XgrammarBackend(max_expanded_bytes=5000).load(as_tables(SPECS["wide"], backend, tokenizer), tokenizer)


def test_a_grammar_keeps_its_cost_in_a_compiler_that_has_it(tokenizer: GrammarTokenizer) -> None:
    backend = XgrammarBackend()
    first, second = (backend.compile(SPECS["wide"], tokenizer) for _ in range(2))
    assert second.compile_ms > 0.99 * first.compile_ms


def test_a_rule_is_known_again_in_other_grammars(tokenizer: GrammarTokenizer) -> None:
    compiler, long = xgrammar.GrammarCompiler(tokenizer.xgrammar), {"type": "string", "minLength": 3, "maxLength": 60}
    specs = [schema_spec({"type": "object", "properties": properties}) for properties in ({"a": long}, {"b": INTEGER, "c": long})]
    first, second = (shape_of(compiled(recipe_of(spec), compiler)).rules for spec in specs)
    longest = max(first, key=first.__getitem__)
    assert first[longest] > 60 * len("[ -!]->")
    assert longest in second
    assert set(second) - set(first)


def test_the_expanded_size_is_known_before_expanding(spec: GrammarSpec, tokenizer: GrammarTokenizer) -> None:
    grammar = compiled(recipe_of(spec), xgrammar.GrammarCompiler(tokenizer.xgrammar))
    text, estimate = grammar.serialize_json(), shape_of(grammar).size
    automata = text.index('"adaptive_token_mask_cache"')
    assert 0.5 < estimate.automata / automata < 1.5
    assert 0.3 < estimate.total / len(text) < 3


def test_one_backend_loads_in_many_threads(backend: XgrammarBackend, tokenizer: GrammarTokenizer) -> None:
    forms = [form for spec in SPECS.values() for form in (as_recipe(spec, backend), as_tables(spec, backend, tokenizer))]
    fresh = XgrammarBackend()
    with ThreadPoolExecutor(8) as pool:
        grammars = list(pool.map(lambda data: fresh.load(data, tokenizer), forms * 4))
    for at in range(0, len(forms), 2):
        walk([*grammars[at : at + 2], grammars[at + len(forms)]], seed=at)


def test_a_payload_of_another_version_is_an_artifact_error(backend: XgrammarBackend, tokenizer: GrammarTokenizer) -> None:
    data = write_payload("0.1.0/v1/1", recipe_of(SPECS["regex"]), None, 0)
    with pytest.raises(ArtifactError, match="version"):
        backend.load(data, tokenizer)


@pytest.mark.parametrize("tables", ["", "{}", "null", "not JSON", '{"__VERSION__":"v16"}'])
def test_tables_that_are_none_are_an_artifact_error(tables: str, backend: XgrammarBackend, tokenizer: GrammarTokenizer) -> None:
    with pytest.raises(ArtifactError):
        backend.load(write_payload(backend.version, recipe_of(SPECS["regex"]), tables, 0), tokenizer)


@pytest.mark.parametrize(("kind", "text"), [("ebnf", "root ::= missing"), ("lark", "start: /a/"), ("json_schema", "["), ("?", "")])
def test_a_recipe_that_does_not_compile_is_an_artifact_error(
    kind: str, text: str, backend: XgrammarBackend, tokenizer: GrammarTokenizer
) -> None:
    payload = XgrammarPayload(backend.version, kind, "standard", pack(text), None, 0, None)
    with pytest.raises(ArtifactError):
        backend.load(msgspec.msgpack.encode(payload), tokenizer)


@given(st.binary(max_size=200))
def test_rubbish_is_an_artifact_error(rubbish: bytes) -> None:
    payload = XgrammarPayload("1", "regex", "standard", b"", None, 0, None)
    for data in (rubbish, msgspec.msgpack.encode(payload)[:-1] + rubbish[:1] + rubbish):
        with pytest.raises(ArtifactError):
            read_payload(data, "1").recipe(1000)


def test_a_mask_of_flexible_whitespace_is_bounded_in_both_forms(backend: XgrammarBackend, tokenizer: GrammarTokenizer) -> None:
    space = tokenizer.encode(" ")[0]
    masks = torch.zeros(2, (VOCAB_SIZE + 31) // 32, dtype=torch.int32)
    for row, data in enumerate((as_recipe(SPECS["flexible"], backend), as_tables(SPECS["flexible"], backend, tokenizer))):
        matcher = backend.load(data, tokenizer).matcher(None, 0)
        assert matcher.accept(tokenizer.encode("{")[0])
        assert sum(matcher.accept(space) for _ in range(40)) == 32
        matcher.fill(masks, row)
    assert torch.equal(masks[0], masks[1])
