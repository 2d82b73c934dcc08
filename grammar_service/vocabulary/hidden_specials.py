"""Special tokens out of reach of any text."""

from __future__ import annotations

from typing import Any

import msgspec

_OUT_OF_REACH = "\ufdd0"
"""Unicode keeps it from ever being a character."""


def hide_specials(written: str) -> str:
    """A tokenizer (as tokenizers.Tokenizer writes it) with the same ids, in which special tokens are spelled as no text is.

    llguidance (1.7) encodes forced text with it, and would find the special token where a grammar forces its spelling: `</s>` as text is
    three tokens, of which the special one is none, so that nothing at all would be allowed.
    """
    rules: dict[str, Any] = msgspec.json.decode(written)
    hidden: dict[str, str] = {}
    for added in rules["added_tokens"]:
        if added["special"]:
            hidden[added["content"]] = added["content"] = added["content"] + _OUT_OF_REACH
    model = rules["model"]
    known = model["vocab"]
    if isinstance(known, dict):
        model["vocab"] = {hidden.get(token, token): index for token, index in known.items()}
    else:  # Unigram has scores
        model["vocab"] = [[hidden.get(token, token), score] for token, score in known]
    if "unk_token" in model:
        model["unk_token"] = hidden.get(model["unk_token"], model["unk_token"])
    return msgspec.json.encode(rules).decode()
