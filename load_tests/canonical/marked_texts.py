"""Texts with marks in Unicode's form NFC, for tokenizers that bring texts into it."""

from __future__ import annotations

from random import Random

from tokenizers import normalizers

from load_tests.canonical.probes import CHARACTERS, project_texts

MARKED = (
    f"{CHARACTERS}eoE<=<eo"  # letters and signs, and what composes with them or comes in an order
    "\u0323\u0308\u0302\u0334\u0345\u0338\u1ec7\u01d6\u00f6"
    "\ud55c\ud558\u1112\u1161\u11ab\u304b\u3099\u304c"  # Korean whole and in parts, Japanese
    "\u0915\u093c\u094d\u0995\u09c7\u09be\u0e01\u0e38\u0e48\u0627\u0654\u0651\u064e"  # Hindi, Bengali, Thai, Arabic
    "\u0344\u0958\u212b\uf900"  # never in NFC
)


def marked_texts() -> list[str]:
    """Those of the project and characters by chance."""
    chance = Random(11)
    odd = "".join(chance.choice(MARKED) for _ in range(40_000))
    return [normalizers.NFC().normalize_str(text) for text in [*project_texts(), odd]]
