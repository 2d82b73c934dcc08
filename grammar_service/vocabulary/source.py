"""Where a model has its vocabulary from: files on this machine, or on the Hugging Face hub, as vLLM's engine arguments name them (0.32:
`config/model.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from grammar_service.vocabulary.tokenizer_modes import AUTO, MISTRAL, mistral_width, mode_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FILES = ("*.json", "*.model", "*.model.v*", "*.txt", "*.jinja")
"""What tokenizers and configurations are in; not the weights."""
CODE = ("*.py", "*.tiktoken")
"""What tokenizers have besides that bring code of their own."""


class TokenizerSource(msgspec.Struct, frozen=True):
    """`model`: a folder or a name on the hub, whose configuration tells how many tokens there are, unless `vocab_size` does. `tokenizer`:
    likewise, empty: the model's own. `revision`s: of these on the hub, None: the newest. `trust_remote_code`: run code that stands beside
    the files. `tokenizer_mode`: how vLLM reads them."""

    model: str
    tokenizer: str = ""
    revision: str | None = None
    tokenizer_revision: str | None = None
    trust_remote_code: bool = False
    vocab_size: int | None = None
    tokenizer_mode: str = AUTO

    @classmethod
    def named(cls, source: str | Path | TokenizerSource) -> TokenizerSource:
        """What it is already, or that of a folder or a name."""
        return source if isinstance(source, TokenizerSource) else cls(str(source))

    @classmethod
    def of(cls, model: str, engine_args: Mapping[str, Any]) -> TokenizerSource:
        """As an engine with these arguments, by vLLM's names, reads it."""
        revision, overrides = engine_args.get("revision"), engine_args.get("hf_overrides")
        width = None
        if isinstance(overrides, Mapping):
            width = {**overrides, **(overrides.get("text_config") or {})}.get("vocab_size")
        return cls(
            model,
            str(engine_args.get("tokenizer") or ""),
            revision,
            engine_args.get("tokenizer_revision") or revision,
            engine_args.get("trust_remote_code") is True,
            width if isinstance(width, int) else None,
            str(engine_args.get("tokenizer_mode") or AUTO).lower(),
        )

    def downloaded(self) -> TokenizerSource:
        """The same by folders: this process may have the means to get them, so that others, who read them, need none. Where one cannot be
        had its name stays: who reads it finds out why."""
        mode = MISTRAL if self._mode() == MISTRAL else self.tokenizer_mode  # by the weights, which are not downloaded
        model = self._folder(self.model, self.revision)
        tokenizer = self._folder(self.tokenizer, self.tokenizer_revision) if self.tokenizer else ""
        return msgspec.structs.replace(self, model=model, tokenizer=tokenizer, tokenizer_mode=mode)

    def load(self) -> tuple[PreTrainedTokenizerBase, int]:
        """The tokenizer, and how many tokens the model has. Raises OSError, ValueError: it cannot be read."""
        from transformers import AutoTokenizer  # takes seconds, and who only reads settings needs none of it

        name, revision = self._of_tokenizer
        if self._mode() == MISTRAL:
            from grammar_service.vocabulary.mistral import load_mistral

            return load_mistral(Path(name)), self._width() if self.vocab_size is None else self.vocab_size
        # As vLLM does in its mode "hf", which leaves `tekken.json` alone.
        tokenizer = AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=self.trust_remote_code, mistral_format=False)
        return tokenizer, self._width() if self.vocab_size is None else self.vocab_size

    @property
    def _of_tokenizer(self) -> tuple[str, str | None]:
        return (self.tokenizer, self.tokenizer_revision) if self.tokenizer else (self.model, self.revision)

    def _mode(self) -> str:
        name, revision = self._of_tokenizer
        return mode_of(_files(name, revision), self.tokenizer_mode) if self.tokenizer_mode == AUTO else self.tokenizer_mode

    def _width(self) -> int:
        from transformers import AutoConfig, PreTrainedConfig

        if self._mode() == MISTRAL and (width := mistral_width(Path(self.model))) is not None:
            return width
        try:
            config = AutoConfig.from_pretrained(self.model, revision=self.revision, trust_remote_code=self.trust_remote_code)
        except ValueError:  # of a kind that only vLLM knows
            told, _ = PreTrainedConfig.get_config_dict(self.model, revision=self.revision)
            return int({**told, **(told.get("text_config") or {})}["vocab_size"])
        return int(config.get_text_config().vocab_size)

    def _folder(self, name: str, revision: str | None) -> str:
        from huggingface_hub import snapshot_download

        if Path(name).exists():
            return name
        try:
            return snapshot_download(name, revision=revision, allow_patterns=[*FILES, *(CODE if self.trust_remote_code else ())])
        except (OSError, ValueError):
            return name


def _files(name: str, revision: str | None) -> list[str]:
    """Of a folder, or of a repository on the hub; none where they cannot be had."""
    from huggingface_hub import list_repo_files

    if Path(name).is_dir():
        return [str(file) for file in Path(name).rglob("*") if file.is_file()]
    try:
        return list_repo_files(name, revision=revision)
    except (OSError, ValueError):
        return []
