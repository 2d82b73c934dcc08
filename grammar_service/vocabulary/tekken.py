"""Tekken, the 131,072-token vocabulary in the data folder of `mistral_common`, as a Hugging Face tokenizer: a real, large vocabulary
that needs no download."""

from __future__ import annotations

import base64
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path

import msgspec
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from grammar_service.errors import UnusableFile

PACKAGE = "mistral_common"
FILE = "tekken_240911.json"
LAYOUT = 2
"""Part of the folder's name: counts up when the conversion changes."""
_FIRST_SPECIALS = ("<unk>", "<s>", "</s>")


class TokenEntry(msgspec.Struct, frozen=True):
    rank: int
    token_bytes: str


class SpecialEntry(msgspec.Struct, frozen=True):
    token_str: str
    rank: int


class TekkenConfig(msgspec.Struct, frozen=True):
    pattern: str
    default_vocab_size: int
    default_num_special_tokens: int


class TekkenFile(msgspec.Struct, frozen=True):
    """What we read of the file. Ids of a token are its rank plus the number of special tokens."""

    config: TekkenConfig
    vocab: list[TokenEntry]
    special_tokens: list[SpecialEntry] | None = None


_FILE = msgspec.json.Decoder(TekkenFile)


def tekken_source(package: str = PACKAGE) -> Path:
    """The vocabulary's file. Raises UnusableFile: the package or the file in it is missing."""
    try:
        found = [file for file in files(package) or () if file.name == FILE]
    except PackageNotFoundError:
        found = []
    path = Path(str(found[0].locate())) if found else None
    if path is None or not path.is_file():
        raise UnusableFile(f"the Tekken vocabulary comes with the package {package}, which is not installed, or lacks {FILE}")
    return path


def tekken_folder(parent: Path | None = None) -> Path:
    """A folder with the tokenizer and a configuration that tells its size; made at the first call (some 10 s), then reused.

    `parent` is the user's cache folder by default. Raises UnusableFile.
    """
    parent = parent or _user_cache()
    source = tekken_source()
    folder = parent / f"{source.stem}-{version(PACKAGE)}-{LAYOUT}"
    if not folder.is_dir():
        parent.mkdir(parents=True, exist_ok=True)
        _write(source, folder)
    return folder


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "maskcast" / "tokenizers"


def _write(source: Path, folder: Path) -> None:
    """Writes beside the folder and renames, so that nobody ever sees half of it."""
    unfinished = Path(tempfile.mkdtemp(prefix=folder.name, dir=folder.parent))
    try:
        tekken = _FILE.decode(source.read_bytes())
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=convert(tekken), bos_token="<s>", eos_token="</s>")
        tokenizer.save_pretrained(str(unfinished))
        # With the version, transformers does not take the tokenizer for an older one whose pattern it would mend.
        configuration = {
            "model_type": "llama",
            "vocab_size": tekken.config.default_vocab_size,
            "transformers_version": version("transformers"),
        }
        (unfinished / "config.json").write_text(json.dumps(configuration), encoding="utf-8")
        unfinished.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was quicker
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def read_tekken(path: Path) -> Tokenizer:
    """Raises ValueError: it is no such file."""
    try:
        return convert(_FILE.decode(path.read_bytes()))
    except msgspec.MsgspecError as error:
        raise ValueError(f"{path} is no tokenizer of Tekken's: {error}") from None


def convert(tekken: TekkenFile) -> Tokenizer:
    """The same vocabulary, ids and token sequences as a byte-level BPE."""
    config = tekken.config
    specials = _special_names(tekken)
    entries = tekken.vocab[: config.default_vocab_size - len(specials)]
    ranks = {base64.b64decode(entry.token_bytes): entry.rank for entry in entries}
    letters = byte_letters()
    vocabulary = {name: index for index, name in enumerate(specials)}
    vocabulary.update({"".join(letters[byte] for byte in token): rank + len(specials) for token, rank in ranks.items()})
    tokenizer = Tokenizer(models.BPE(vocabulary, merges_of(ranks), ignore_merges=True))
    split = pre_tokenizers.Split(Regex(config.pattern), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in specials])
    return tokenizer


def _special_names(tekken: TekkenFile) -> list[str]:
    told = sorted(tekken.special_tokens or (), key=lambda entry: entry.rank)
    names = [entry.token_str for entry in told] or list(_FIRST_SPECIALS)
    return names + [f"<SPECIAL_{index}>" for index in range(len(names), tekken.config.default_num_special_tokens)]


def byte_letters() -> dict[int, str]:
    """The letter for each byte in the alphabet of byte-level tokenizers."""
    return dict(bytes_to_unicode())


def merges_of(ranks: Mapping[bytes, int]) -> list[tuple[str, str]]:
    """Every pair of tokens whose concatenation is one, in the order in which the encoder prefers them, in letters."""
    letters = byte_letters()
    merges: list[tuple[str, str]] = []
    for token in sorted(ranks, key=ranks.__getitem__):
        pairs = [(token[:at], token[at:]) for at in range(1, len(token))]
        known = sorted((pair for pair in pairs if pair[0] in ranks and pair[1] in ranks), key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
        merges.extend(("".join(letters[byte] for byte in left), "".join(letters[byte] for byte in right)) for left, right in known)
    return merges
