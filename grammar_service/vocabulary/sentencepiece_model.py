"""SentencePiece models as tokenizers of the `tokenizers` library: the same ids, the same sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 1, 2, 3, 4, 6
"""Types of pieces, as the model's file numbers them."""
_SPACE = "▁"


def convert_sentencepiece(data: bytes, added: Mapping[int, AddedToken]) -> Tokenizer:
    """`data`: the model's file. `added`: tokens that are not in it, by id. Raises ValueError: it is neither BPE nor Unigram."""
    from sentencepiece import sentencepiece_model_pb2  # who has no such model needs no such package

    messages: Any = sentencepiece_model_pb2  # made when it is imported
    proto = messages.ModelProto.FromString(data)
    made = Tokenizer(_model(proto))
    made.normalizer = _normalizer(proto.normalizer_spec)
    undo = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    made.decoder = decoders.Sequence([*undo, decoders.Strip(" ", 1, 0)] if proto.normalizer_spec.add_dummy_prefix else undo)
    # Symbols that users have defined are tokens too, but their spellings are not encoded as these.
    hidden = [AddedToken(piece.piece, special=True, normalized=False) for piece in proto.pieces if piece.type in (_UNKNOWN, _CONTROL)]
    made.add_special_tokens(hidden)
    made.add_tokens([token for _, token in sorted(added.items())])
    return made


def _model(proto: Any) -> models.Model:
    pieces, trained = list(proto.pieces), proto.trainer_spec
    has_bytes = any(piece.type == _BYTE for piece in pieces)
    if trained.model_type == trained.BPE:
        vocabulary = {piece.piece: index for index, piece in enumerate(pieces)}
        return models.BPE(vocabulary, _merges(pieces), unk_token=trained.unk_piece, fuse_unk=True, byte_fallback=has_bytes)
    if trained.model_type != trained.UNIGRAM:
        raise ValueError(f"a SentencePiece model of kind {trained.model_type} has no grammars")
    unknown = next(index for index, piece in enumerate(pieces) if piece.type == _UNKNOWN)
    # The spelling of a byte, such as <0x0A>, must never be worth more than its six characters.
    least = 7 * min(piece.score for piece in pieces)
    scores = [(piece.piece, least if piece.type == _BYTE else piece.score) for piece in pieces]
    return models.Unigram(scores, unk_id=unknown, byte_fallback=has_bytes)


def _merges(pieces: Sequence[Any]) -> list[tuple[str, str]]:
    """Every pair of pieces whose concatenation is one, in the order in which the encoder prefers them."""
    ranks = {piece.piece: (-piece.score, index) for index, piece in enumerate(pieces) if piece.type in (_NORMAL, _USER_DEFINED)}
    merges: list[tuple[str, str]] = []
    for piece in sorted((piece.piece for piece in pieces if piece.type == _NORMAL), key=ranks.__getitem__):
        pairs = [(piece[:at], piece[at:]) for at in range(1, len(piece))]
        known = [pair for pair in pairs if pair[0] in ranks and pair[1] in ranks]
        merges.extend(sorted(known, key=lambda pair: (ranks[pair[0]], ranks[pair[1]])))
    return merges


def _normalizer(rules: Any) -> normalizers.Normalizer:
    steps: list[normalizers.Normalizer] = []
    if rules.precompiled_charsmap:
        steps.append(normalizers.Precompiled(rules.precompiled_charsmap))
    if rules.remove_extra_whitespaces:
        steps += [normalizers.Replace(Regex("^ +| +$"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    if rules.add_dummy_prefix:
        steps.append(normalizers.Prepend(_SPACE))
    return normalizers.Sequence([*steps, normalizers.Replace(" ", _SPACE)])
