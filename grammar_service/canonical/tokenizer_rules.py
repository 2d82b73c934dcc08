"""What of a tokenizer decides which tokens it makes of a text, and whether that is followed exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import Any

import msgspec

from grammar_service.canonical.letters import SPACE, ByteTokens, Spelled, of_bytes, of_characters, refused
from grammar_service.canonical.merges import MergeTable
from grammar_service.canonical.pretokenizers.pattern import GPT2, WHOLE

_PLAIN: dict[str, Any] = {
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
}
"""Other options of merges than these are not followed."""
_SPACES_WRITTEN = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
_SPACE_BEFORE = {"type": "Prepend", "prepend": SPACE}
_EMPTY_SEQUENCE = {"type": "Sequence", "normalizers": []}
_CUT_AT_SPACES = " [^ ]*|[^ ]+"
"""What `Metaspace` does where it splits."""


class _Merge(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """No lists: hundreds of thousands of these set off Python's collector, over all that a process has, for half a second."""

    left: str
    right: str


_PARTS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MERGES = msgspec.json.Decoder(list[_Merge | str])


@dataclass(frozen=True, eq=False)
class TokenizerRules:
    """Merges of bytes, or of characters where there is a `fallback`. `spelled`; `merges`; `pattern`: what texts are cut by; `digits`:
    around each numeral before; `added`: ids by the spelling that the encoder looks for before anything else; `whole_first`: a piece that is
    a token stays one; `nfc`: texts are brought into NFC first."""

    spelled: Spelled
    merges: MergeTable
    pattern: str
    digits: bool
    added: Mapping[bytes, int]
    whole_first: bool
    nfc: bool
    fallback: ByteTokens | None


def rules_of(written: str, vocab_size: int) -> TokenizerRules:
    """`written`: the tokenizer as `tokenizers` writes it. Raises UnsupportedGrammar: its tokens are not followed; it says why."""
    held = _held(written)
    model = held["model"]
    if model["type"] != "BPE":
        raise refused(f"it is {model['type']}, not one of merges")
    if model.get("byte_fallback"):
        return _of_characters(held, vocab_size)
    nfc = held["normalizer"] == {"type": "NFC"}
    if held["normalizer"] not in (None, _EMPTY_SEQUENCE) and not nfc:
        raise refused(f"it changes texts before it cuts them ({held['normalizer']['type']})")
    _refuse_options(model, _PLAIN)
    pattern, digits = _cuts(held["pre_tokenizer"])
    ids = _ids(model["vocab"], vocab_size)
    added = _added(held["added_tokens"], vocab_size, nfc)
    spelled = of_bytes(ids, _special(held), vocab_size)
    merges = _merges(model["merges"], ids, vocab_size)
    return TokenizerRules(spelled, merges, pattern, digits, added, bool(model.get("ignore_merges")), nfc, None)


def _held(written: str) -> dict[str, Any]:
    parts = _PARTS.decode(written)
    model = _PARTS.decode(parts.pop("model"))
    merges = {"merges": _MERGES.decode(model.pop("merges"))} if "merges" in model else {}
    held, options = ({name: msgspec.json.decode(part) for name, part in of_them.items()} for of_them in (parts, model))
    return {**held, "model": {**options, **merges}}


def _of_characters(held: dict[str, Any], vocab_size: int) -> TokenizerRules:
    """As SentencePiece has them. A space that is put before a text is not followed: an answer is no beginning of one."""
    model = held["model"]
    _refuse_options(model, {option: plain for option, plain in _PLAIN.items() if option != "unk_token"} | {"ignore_merges": False})
    pattern = _cuts_at_spaces(held["normalizer"], held["pre_tokenizer"])
    ids = _ids(model["vocab"], vocab_size)
    added = _added(held["added_tokens"], vocab_size, False)
    if any(SPACE in spelling.decode() for spelling in added):
        raise refused("one of its added tokens is spelled with the sign for a space")
    spelled, fallback = of_characters(ids, _special(held), vocab_size)
    return TokenizerRules(spelled, _merges(model["merges"], ids, vocab_size), pattern, False, added, False, False, fallback)


def _cuts_at_spaces(normalizer: Any, pre_tokenizer: Any) -> str:
    """The regex, on texts as they are."""
    steps = normalizer["normalizers"] if normalizer is not None and normalizer["type"] == "Sequence" else [normalizer]
    if pre_tokenizer is None and steps in ([_SPACES_WRITTEN], [_SPACE_BEFORE, _SPACES_WRITTEN]):
        return WHOLE
    match pre_tokenizer:
        case {"type": "Metaspace", "replacement": "\u2581", "split": bool(cuts)} if normalizer is None:
            return _CUT_AT_SPACES if cuts else WHOLE
    raise refused("it has `byte_fallback`, and does more with texts than to write their spaces as SentencePiece does")


def _refuse_options(model: dict[str, Any], plain: Mapping[str, Any]) -> None:
    for option, value in plain.items():
        if (model.get(option) or None) != (value or None):
            raise refused(f"`{option}` of its merges is not followed")


def _special(held: dict[str, Any]) -> set[str]:
    return {token["content"] for token in held["added_tokens"]}


def _ids(vocab: Mapping[str, int], vocab_size: int) -> dict[str, int]:
    return {token: number for token, number in vocab.items() if number < vocab_size}


def _merges(written: Sequence[_Merge | str], ids: Mapping[str, int], vocab_size: int) -> MergeTable:
    pairs = [_Merge(*merge.split(" ")) if isinstance(merge, str) else merge for merge in written]
    left, right = [merge.left for merge in pairs], [merge.right for merge in pairs]
    number = ids.__getitem__
    try:
        return MergeTable(zip(map(number, left), map(number, right), map(number, map(add, left, right)), strict=True), vocab_size)
    except KeyError as error:
        raise refused(f"a merge has no token: {error}") from None


def _cuts(rule: Any) -> tuple[str, bool]:
    """The regex, and whether digits are cut before."""
    parts = rule["pretokenizers"] if rule is not None and rule["type"] == "Sequence" else [rule]
    digits = bool(parts) and parts[0] is not None and parts[0]["type"] == "Digits"
    if digits:
        if not parts[0]["individual_digits"]:
            raise refused("it keeps runs of digits together")
        parts = parts[1:]
    match parts:
        case [{"type": "ByteLevel", "add_prefix_space": False, "use_regex": bool(cuts)}]:
            return GPT2 if cuts else WHOLE, digits
        case [
            {"type": "Split", "pattern": {"Regex": str(pattern)}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
        ]:
            return pattern, digits
    raise refused("its pre-tokenizer is not one regex over bytes, after digits or not")


def _added(tokens: list[dict[str, Any]], vocab_size: int, nfc: bool) -> dict[bytes, int]:
    """Special ones stand for no text, and their spelling is encoded as any other. Where they are found in a text before it is brought into
    NFC, what is behind them has nothing to compose with."""
    found: dict[bytes, int] = {}
    for token in tokens:
        if token["special"] or token["id"] >= vocab_size:
            continue
        if token["single_word"] or token["lstrip"] or token["rstrip"]:
            raise refused(f"its added token {token['content']!r} takes what stands beside it")
        if nfc and token["normalized"]:
            raise refused(f"its added token {token['content']!r} is looked for in what NFC makes of a text")
        found[token["content"].encode()] = token["id"]
    _refuse_overlaps([*found])
    return found


def _refuse_overlaps(spellings: list[bytes]) -> None:
    """What the encoder finds would depend on more than where a spelling ends."""
    for one in spellings:
        for other in spellings:
            if one != other and one in other:
                raise refused("one of its added tokens is part of another")
            if any(one.endswith(other[:length]) for length in range(1, min(len(one), len(other)))):
                raise refused("two of its added tokens may overlap")
