"""Tokenizers that are not fast have grammars as well: the same ids, the same bytes, the same sequences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from tokenizers import AddedToken

from grammar_service.backends.protocol import accepted_prefix
from grammar_service.vocabulary.slow import to_fast_tokenizer
from grammar_service.vocabulary.source import TokenizerSource
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from grammar_service.vocabulary.tokenizer_modes import mode_of
from tests.driving import grammar_of, schema_spec
from tests.tokenizers.mistral_folder import SPM_SIZE, TEKKEN_SIZE, save_sentencepiece_model, save_tekken_model

TEXTS = (
    *("", "hello", " hello  world\n\n", '{"name": "Zoë", "n": [1, 22, 333]}', "日本語 と 🎉", "e\u0301", "\t\r\n x", "a" * 300),
    *("def f(x):\n    return x**2  # why?\n", "[INST] no </s> mark [TOOL_CALLS]", "\u00a0\u2028", "don't WE'LL I'd", "\x00\x07"),
)
SCHEMA = {"type": "object", "properties": {"a": {"enum": ["é日", "[INST]", "</s>"]}, "b": {"type": "string"}}, "required": ["a", "b"]}
FOLDERS: dict[str, tuple[Callable[[Path], Path], int]] = {
    "tekken": (save_tekken_model, TEKKEN_SIZE),
    "sentencepiece": (save_sentencepiece_model, SPM_SIZE),
}


@pytest.fixture(scope="module", params=FOLDERS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    save, size = FOLDERS[request.param]
    return save(tmp_path_factory.mktemp(request.param)), size


def original(folder: Path) -> Any:
    """Mistral's own."""
    if (folder / "tekken.json").is_file():
        return Tekkenizer.from_file(folder / "tekken.json")
    return SentencePieceTokenizer(folder / "tokenizer.model.v3")


def test_mistrals_own_files_have_the_same_ids_and_sequences(folder: tuple[Path, int]) -> None:
    path, size = folder
    tokenizer, theirs = GrammarTokenizer.load(path), original(path)
    assert tokenizer.vocab_size == size
    assert tokenizer.stop_token_ids == (theirs.eos_id,)
    for text in TEXTS:
        ids = theirs.encode(text, bos=False, eos=False)
        assert tokenizer.encode(text) == ids, text
    hidden = {index for index, text in enumerate(tokenizer.vocabulary) if not text}
    assert hidden >= {index for index in range(size) if theirs.is_special(index)}


def test_a_grammar_holds_in_such_a_vocabulary(folder: tuple[Path, int]) -> None:
    path, _ = folder
    tokenizer, theirs = GrammarTokenizer.load(path), original(path)
    for backend in ("xgrammar", "llguidance"):
        matcher = grammar_of(schema_spec(SCHEMA), tokenizer, backend).matcher(None, 0)
        ids = [*(tokenizer.inner.encode('{"a": "[INST]", "b": "Zoë"}'.encode()) or ()), theirs.eos_id]
        assert accepted_prefix(matcher, ids) == len(ids)


def test_the_engines_tokenizer_and_the_pools_have_the_same_fingerprint(folder: tuple[Path, int]) -> None:
    path, size = folder

    class Holder:
        """As vLLM's for Mistral holds it."""

        tokenizer = original(path)
        eos_token_id = 2

    assert GrammarTokenizer.from_huggingface(Holder(), size).fingerprint == GrammarTokenizer.load(path).fingerprint
    source = TokenizerSource.of(str(path), {}).downloaded()
    assert source.tokenizer_mode == "mistral"
    assert GrammarTokenizer.load(source).fingerprint == GrammarTokenizer.load(path).fingerprint


def test_a_tiktoken_encoding_within_a_slow_tokenizer(tmp_path: Path) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    for pair in (b"he", b"ll", b"hell", b"lo", b"hello", b" w", "é".encode()):
        ranks[pair] = len(ranks)
    specials = {"<|end|>": len(ranks), "<|call|>": len(ranks) + 1, "<|reserved|>": len(ranks) + 2}
    encoding = tiktoken.Encoding("x", pat_str=r"\p{N}{1,3}+|\p{L}+| ?\S|\s+", mergeable_ranks=ranks, special_tokens=specials)

    class Slow:
        """As models bring it, with code of their own."""

        def __init__(self) -> None:
            self.model = encoding
            self.eos_token_id = specials["<|end|>"]
            self.added_tokens_decoder = {
                specials["<|end|>"]: AddedToken("<|end|>", special=True),
                specials["<|call|>"]: AddedToken("<|call|>", special=False),
            }

    tokenizer = GrammarTokenizer.from_huggingface(Slow())
    for text in ("hello world", "12345678", "é hell\n"):
        assert tokenizer.encode(text) == encoding.encode_ordinary(text)
    assert tokenizer.vocabulary[specials["<|call|>"]] == b"<|call|>"
    assert tokenizer.vocabulary[specials["<|reserved|>"]] == b""
    assert tokenizer.stop_token_ids == (specials["<|end|>"],)


def test_others_are_refused() -> None:
    with pytest.raises(ValueError, match="not object"):
        to_fast_tokenizer(object())


@pytest.mark.parametrize(
    ("files", "mode", "chosen"),
    [
        (["tekken.json", "consolidated.safetensors"], "auto", "mistral"),
        (["a/tekken.json", "b/consolidated-00001-of-00002.safetensors"], "auto", "mistral"),
        (["tokenizer.model.v3", "consolidated.safetensors"], "auto", "mistral"),
        (["tokenizer.model", "consolidated.safetensors"], "auto", "hf"),
        (["tekken.json", "model.safetensors"], "auto", "hf"),
        (["tekken.json", "consolidated.safetensors"], "hf", "hf"),
        ([], "mistral", "mistral"),
    ],
)
def test_the_mode_is_the_one_that_vllm_chooses(files: list[str], mode: str, chosen: str) -> None:
    assert mode_of(files, mode) == chosen
