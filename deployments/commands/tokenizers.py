"""The tokenizers that commands know by name."""

from __future__ import annotations

from deployments.builders import path_of
from grammar_service.vocabulary.tekken import tekken_folder

TEKKEN = "tekken"


def tokenizer_path(name: str) -> str:
    """A folder with a tokenizer and its model's configuration, or a name on the hub: as `model.path` has it, or "tekken".

    Raises:
        UnusableFile: "tekken", and the package that it comes with is missing.
    """
    return str(tekken_folder()) if name == TEKKEN else path_of(name)
