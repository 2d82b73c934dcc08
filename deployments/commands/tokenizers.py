"""The tokenizers that commands know by name."""

from __future__ import annotations

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.config_model import EMBEDDED
from grammar_service.vocabulary.tekken import tekken_folder

TEKKEN = "tekken"


def tokenizer_path(name: str) -> str:
    """A folder with a tokenizer and its model's configuration, or a name on the hub.

    Raises:
        UnusableFile: "tekken", and the package that it comes with is missing.
    """
    if name == EMBEDDED:
        return str(EMBEDDED_WEIGHTS)
    return str(tekken_folder()) if name == TEKKEN else name
