"""What of a tokenizer decides which tokens it makes of a text, and whether that is followed exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from transformers.convert_slow_tokenizer import bytes_to_unicode

from grammar_service.canonical.merges import MergeTable
from grammar_service.canonical.pretokenizers.pattern import GPT2, WHOLE
from grammar_service.errors import UnsupportedGrammar

_PLAIN: dict[str, Any] = {
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "byte_fallback": False,
}
"""Other options of merges than these are not followed."""


@dataclass(frozen=True, eq=False)
class TokenizerRules:
    """A byte-level BPE. `spelled`: each id as the ids of its bytes, () for ids without text; `merges`; `pattern`: what texts are
    cut by; `digits`: around each numeral before; `added`: ids by the spelling that the encoder looks for before anything else;
    `whole_first`: a piece that is a token stays one; `nfc`: texts are brought into NFC first."""

    spelled: tuple[tuple[int, ...], ...]
    merges: MergeTable
    pattern: str
    digits: bool
    added: Mapping[bytes, int]
    whole_first: bool
    nfc: bool


def rules_of(written: str, vocab_size: int) -> TokenizerRules:
    """`written`: the tokenizer as `tokenizers` writes it. Raises UnsupportedGrammar: its tokens are not followed; it says why."""
    held: dict[str, Any] = msgspec.json.decode(written)
    model = held["model"]
    if model["type"] != "BPE":
        raise _refused(f"it is {model['type']}, not one of merges")
    nfc = held["normalizer"] == {"type": "NFC"}
    if held["normalizer"] is not None and not nfc:
        raise _refused(f"it changes texts before it cuts them ({held['normalizer']['type']})")
    for option, plain in _PLAIN.items():
        if (model.get(option) or None) != (plain or None):
            raise _refused(f"`{option}` of its merges is not followed")
    pattern, digits = _cuts(held["pre_tokenizer"])
    ids = _ids(model["vocab"], vocab_size)
    spelled = [()] * vocab_size
    letters = {letter: byte for byte, letter in bytes_to_unicode().items()}
    own = {byte: ids.get(letter) for letter, byte in letters.items()}
    if None in own.values():
        raise _refused("it has no tokens for some bytes")
    added = _added(held["added_tokens"], vocab_size, nfc)
    special = {token["content"] for token in held["added_tokens"]}
    table: list[tuple[int, ...]] = [*spelled]
    for token, number in ids.items():
        if token not in special and all(letter in letters for letter in token):
            table[number] = tuple(own[letters[letter]] or 0 for letter in token)
    merges = _merges(model["merges"], ids, vocab_size)
    return TokenizerRules(tuple(table), merges, pattern, digits, added, bool(model.get("ignore_merges")), nfc)


def _refused(why: str) -> UnsupportedGrammar:
    return UnsupportedGrammar(f"this tokenizer's canonical output is not known: {why}")


def _ids(vocab: Mapping[str, int], vocab_size: int) -> dict[str, int]:
    return {token: number for token, number in vocab.items() if number < vocab_size}


def _merges(written: list[Any], ids: Mapping[str, int], vocab_size: int) -> MergeTable:
    pairs = [merge if isinstance(merge, list) else merge.split(" ") for merge in written]
    try:
        return MergeTable(((ids[left], ids[right], ids[left + right]) for left, right in pairs), vocab_size)
    except KeyError as error:
        raise _refused(f"a merge has no token: {error}") from None


def _cuts(rule: Any) -> tuple[str, bool]:
    """The regex, and whether digits are cut before."""
    parts = rule["pretokenizers"] if rule is not None and rule["type"] == "Sequence" else [rule]
    digits = bool(parts) and parts[0] is not None and parts[0]["type"] == "Digits"
    if digits:
        if not parts[0]["individual_digits"]:
            raise _refused("it keeps runs of digits together")
        parts = parts[1:]
    match parts:
        case [{"type": "ByteLevel", "add_prefix_space": False, "use_regex": bool(cuts)}]:
            return GPT2 if cuts else WHOLE, digits
        case [
            {"type": "Split", "pattern": {"Regex": str(pattern)}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
        ]:
            return pattern, digits
    raise _refused("its pre-tokenizer is not one regex over bytes, after digits or not")


def _added(tokens: list[dict[str, Any]], vocab_size: int, nfc: bool) -> dict[bytes, int]:
    """Special ones stand for no text, and their spelling is encoded as any other. Where they are found in a text before it is brought into
    NFC, what is behind them has nothing to compose with."""
    found: dict[bytes, int] = {}
    for token in tokens:
        if token["special"] or token["id"] >= vocab_size:
            continue
        if token["single_word"] or token["lstrip"] or token["rstrip"]:
            raise _refused(f"its added token {token['content']!r} takes what stands beside it")
        if nfc and token["normalized"]:
            raise _refused(f"its added token {token['content']!r} is looked for in what NFC makes of a text")
        found[token["content"].encode()] = token["id"]
    _refuse_overlaps([*found])
    return found


def _refuse_overlaps(spellings: list[bytes]) -> None:
    """What the encoder finds would depend on more than where a spelling ends."""
    for one in spellings:
        for other in spellings:
            if one != other and one in other:
                raise _refused("one of its added tokens is part of another")
            if any(one.endswith(other[:length]) for length in range(1, min(len(one), len(other)))):
                raise _refused("two of its added tokens may overlap")
