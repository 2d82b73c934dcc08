"""Tokenizers that are none of the `tokenizers` library, as some of it: the same ids, the same sequences."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from grammar_service.vocabulary.mistral import from_mistral_file
from grammar_service.vocabulary.sentencepiece_model import convert_sentencepiece
from grammar_service.vocabulary.tekken import byte_letters, merges_of

_POSSESSIVE_COUNT = re.compile(r"(\{\d+(?:,\d*)?\})\+")
"""What `fancy_regex` reads so, Oniguruma takes for a repetition of a repetition."""


def to_fast_tokenizer(tokenizer: Any) -> PreTrainedTokenizerFast:
    """Of vLLM's for Mistral, and of slow ones of transformers that hold a model of tiktoken's or SentencePiece's, the same as a fast one.
    Raises ValueError: it is of another kind."""
    if isinstance(tokenizer, PreTrainedTokenizerFast):
        return tokenizer
    inner = getattr(tokenizer, "tokenizer", None)
    if hasattr(inner, "special_ids") and (path := getattr(inner, "file_path", None)) is not None:
        return from_mistral_file(Path(path))
    added: Mapping[int, AddedToken] = dict(getattr(tokenizer, "added_tokens_decoder", {}))
    held = [tokenizer, *getattr(tokenizer, "__dict__", {}).values()]
    if (encoding := next((one for one in held if hasattr(one, "_mergeable_ranks")), None)) is not None:
        made = _of_tiktoken(encoding, added)
    elif (processor := next((one for one in held if hasattr(one, "serialized_model_proto")), None)) is not None:
        made = convert_sentencepiece(processor.serialized_model_proto(), added)
    else:
        raise ValueError(f"grammars need a fast tokenizer, or one of tiktoken or SentencePiece, not {type(tokenizer).__name__}")
    ids = {name: getattr(tokenizer, f"{name}_id", None) for name in ("bos_token", "eos_token")}
    named = {name: made.id_to_token(index) for name, index in ids.items() if index is not None}
    return PreTrainedTokenizerFast(tokenizer_object=made, **named)


def _of_tiktoken(encoding: Any, added: Mapping[int, AddedToken]) -> Tokenizer:
    """Added tokens that are no special ones are text; so are none that only the encoding knows."""
    ranks: Mapping[bytes, int] = encoding._mergeable_ranks
    specials = {**encoding._special_tokens, **{str(token): index for index, token in added.items()}}
    letters = byte_letters()
    spelled = {"".join(letters[byte] for byte in token): rank for token, rank in ranks.items()}
    made = Tokenizer(models.BPE({**spelled, **specials}, merges_of(ranks), ignore_merges=True))
    split = pre_tokenizers.Split(Regex(_POSSESSIVE_COUNT.sub(r"\1", encoding._pat_str)), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    visible = {index for index, token in added.items() if not token.special}
    made.add_tokens([AddedToken(name, special=index not in visible, normalized=False) for name, index in specials.items()])
    return made
