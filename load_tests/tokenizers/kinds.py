"""Folders of tiny models of random weights, each with another kind of tokenizer. The engine makes the weights (`load_format: dummy`)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tokenizers import AddedToken
from transformers import LlamaConfig, PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from tests.tokenizers.harmony_folder import save_harmony_model
from tests.tokenizers.mistral_folder import save_sentencepiece_model, save_tekken_model
from tests.tokenizers.trained_tokenizers import digits_in_threes_tokenizer, sentences_tokenizer

_MARKS = ("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
_KIMI_MARKS = (
    *("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    *("<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"),
)
_END = "</s>"
_TEMPLATE = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant: "
_REMOTE = '''"""A tokenizer on tiktoken, with code of its own, as some models bring it."""

from pathlib import Path

import tiktoken
from tiktoken.load import load_tiktoken_bpe
from transformers import PreTrainedTokenizer


class RemoteTokenizer(PreTrainedTokenizer):
    vocab_files_names = {"vocab_file": "remote.tiktoken"}
    model_input_names = ["input_ids", "attention_mask"]

    def __init__(self, vocab_file, added_tokens_decoder, **options):
        ranks = load_tiktoken_bpe(str(vocab_file))
        specials = {token.content: index for index, token in added_tokens_decoder.items()}
        pattern = r" ?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+|\\s+"
        self.model = tiktoken.Encoding(Path(vocab_file).name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
        super().__init__(added_tokens_decoder=added_tokens_decoder, **options)

    @property
    def vocab_size(self):
        return self.model.n_vocab

    def get_vocab(self):
        return {self._convert_id_to_token(index): index for index in range(self.model.n_vocab)}

    def _tokenize(self, text, **options):
        return [self._convert_id_to_token(index) for index in self.model.encode_ordinary(text)]

    def _convert_token_to_id(self, token):
        specials = self.model._special_tokens
        return specials[token] if token in specials else self.model.encode_single_token(token.encode("latin-1"))

    def _convert_id_to_token(self, index):
        token = self.model.decode_single_token_bytes(index)
        return token.decode() if index in self.model._special_tokens.values() else token.decode("latin-1")

    def convert_tokens_to_string(self, tokens):
        return b"".join(token.encode("latin-1") for token in tokens).decode("utf-8", "replace")
'''


@dataclass(frozen=True)
class Kind:
    """`favoured`: texts of tokens, and what is added to their logits, so that values end before the answer must."""

    name: str
    save: Callable[[Path], object]
    tool_call_parser: str
    favoured: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({'"': 3.0}))
    engine_args: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    reasoning_parser: str | None = None


def _save_model(folder: Path, vocab_size: int) -> None:
    shape = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 128}
    of_tokenizer = {"bos_token_id": None, "eos_token_id": None}
    config = LlamaConfig(vocab_size=vocab_size, max_position_embeddings=2048, architectures=["LlamaForCausalLM"], **shape, **of_tokenizer)
    config.save_pretrained(str(folder))


def _save_fast(trained: Callable[[], PreTrainedTokenizerFast], marks: Iterable[str]) -> Callable[[Path], None]:
    def save(folder: Path) -> None:
        tokenizer = trained()
        tokenizer.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in marks])
        tokenizer.chat_template = _TEMPLATE
        tokenizer.save_pretrained(str(folder))
        _save_model(folder, len(tokenizer))

    return save


def _save_remote(folder: Path) -> None:
    """The ranks are those of a byte-level tokenizer, bytes first."""
    written = json.loads(digits_in_threes_tokenizer().backend_tokenizer.to_str())["model"]
    spelled = {letter: bytes([byte]) for byte, letter in bytes_to_unicode().items()}
    words = [*spelled, *("".join(pair) for pair in written["merges"])]
    ranks = dict.fromkeys(b"".join(spelled[letter] for letter in word) for word in words)
    lines = (f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(ranks))
    (folder / "remote.tiktoken").write_text("".join(lines), encoding="ascii")
    (folder / "tokenization_remote.py").write_text(_REMOTE, encoding="utf-8")
    added = {
        str(len(ranks) + index): {"content": mark, "special": mark == _END, "normalized": False, "lstrip": False, "rstrip": False}
        for index, mark in enumerate((_END, *_KIMI_MARKS))
    }
    told = {
        "tokenizer_class": "RemoteTokenizer",
        "auto_map": {"AutoTokenizer": ["tokenization_remote.RemoteTokenizer", None]},
        "added_tokens_decoder": added,
        "eos_token": _END,
        "chat_template": _TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(told), encoding="utf-8")
    _save_model(folder, len(ranks) + len(added))


_XML = {"</arg_value>": 5.0, '"': 3.0}
KINDS = (
    Kind("byte-level BPE", _save_fast(digits_in_threes_tokenizer, _MARKS), "hermes"),
    Kind("byte-level BPE, arguments as XML", _save_fast(digits_in_threes_tokenizer, _MARKS), "glm47", _XML),
    Kind("SentencePiece with byte fallback", _save_fast(sentences_tokenizer, _MARKS), "hermes"),
    Kind("tiktoken, with code of its own", _save_remote, "kimi_k2", engine_args=MappingProxyType({"trust_remote_code": True})),
    Kind("Tekken", save_tekken_model, "mistral"),
    Kind("Mistral's SentencePiece", save_sentencepiece_model, "hermes"),
    Kind("Harmony", save_harmony_model, "openai", {'"': 9.0, "<|end|>": 9.0, "<|channel|>": 9.0}, reasoning_parser="openai_gptoss"),
)
