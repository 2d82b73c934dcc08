"""gpt-oss in small: the marks of Harmony beside single bytes, and a model of random weights with all tokens by the ids that they have in
Harmony."""

from __future__ import annotations

import json
from pathlib import Path

from openai_harmony import HarmonyEncodingName, load_harmony_encoding
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import GptOssConfig, PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from grammar_service.vocabulary.tokenizer import GrammarTokenizer

MARKS = ("<|return|>", "<|call|>", "<|end|>", "<|start|>", "<|message|>", "<|channel|>", "<|constrain|>")
"""By their ids in `harmony_vocabulary`. The first one is the tokenizer's stop token."""
SIZE, FIRST_SPECIAL = 201_088, 199_998
RETURN, CALL, END_OF_TEXT = 200_002, 200_012, 199_999


def harmony_vocabulary() -> GrammarTokenizer:
    """The marks, then single bytes."""
    words = [*MARKS, *bytes_to_unicode().values()]
    return GrammarTokenizer.from_huggingface(_tokenizer({word: index for index, word in enumerate(words)}, MARKS))


def save_harmony_model(folder: Path) -> None:
    """`load_format: dummy` makes the weights."""
    encoding, letters = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS), bytes_to_unicode()
    texts = [encoding._inner.decode_bytes([token]) for token in range(SIZE)]
    special = [text.decode() for text in texts[FIRST_SPECIAL:]]
    plain = ("".join(letters[byte] for byte in text) for text in texts[:FIRST_SPECIAL])
    _tokenizer({word: index for index, word in enumerate([*plain, *special])}, special).save_pretrained(str(folder))
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "hidden_size": 64, "intermediate_size": 64}
    experts = {"num_hidden_layers": 2, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 128}
    config = GptOssConfig(vocab_size=SIZE, max_position_embeddings=2048, architectures=["GptOssForCausalLM"], **heads, **experts)
    config.save_pretrained(str(folder))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [RETURN, END_OF_TEXT, CALL]}), encoding="utf-8")


def _tokenizer(vocabulary: dict[str, int], special: tuple[str, ...] | list[str]) -> PreTrainedTokenizerFast:
    """It makes single bytes of a text."""
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in special])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=MARKS[0])
