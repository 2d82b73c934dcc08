"""What the ingress can say of a call before the model replica has tokenized it: for the router."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, islice, takewhile
from typing import Any

import msgspec

from deployments.access.charges import asked_tokens
from model_service.messages import MOST_ARGUMENT, Endpoint

REMEMBERED = 10_000
"""Grammars whose forced tokens are remembered."""
CHARACTERS_PER_TOKEN = 4
"""Of English text in large vocabularies."""
NEWEST = 0.2
"""What the latest answer counts in the mean of a grammar's forced tokens."""
LOOKED_AT = 4_000
"""Values of a body that are walked through, which takes 2 us each; a body of 4 MiB may have a million."""
FLOAT_CHARACTERS, BITS_PER_DIGIT = 20, 3
"""Estimates for the length of a number as text."""
IMAGE_TOKENS = 1024
"""Estimate for an image: in common models, a photo takes 256 to 4,096 tokens."""
EMBEDDING_CHARACTERS = 1024
"""The least base64 characters of one token's embedding: 384 numbers of 16 bits."""
INSTRUCTIONS = frozenset({"system", "developer"})
SHORTEST, LONGEST = 128, 4096
"""Characters of a prompt's beginning; a shorter one is not worth to be looked for."""
FIRST = 512
"""Characters that are looked at where a prompt has no instructions: what follows them is mostly the request's own."""
NAMED_BY = 2000
"""Texts that the name of a beginning is made of."""
TOKEN_BITS = 64
TOO_LONG = "no token"
"""In place of a larger number: to write one takes the square of its digits."""
_NO_TEXT = frozenset({"image_url", "input_audio"})
"""Members of message parts that are not text. In tools and documents, a member of that name may be text."""
_TEMPLATE_FIELDS = ("tools", "documents", "chat_template_kwargs")
"""Fields that a chat template may render besides the messages."""
# Only as a key of the answer's own: inside a JSON string the quotes would be escaped.
_FORCED = re.compile(r'"forced_tokens":\s*(\d{1,9})')


@dataclass(frozen=True, slots=True)
class PromptFacts:
    """`tokens` is an estimate. `prefix` is a digest of what the prompt begins with, the tools and instructions or else the first `FIRST`
    characters, since an engine computes a beginning that it has seen before only once; empty where that is short."""

    tokens: int
    prefix: str


class CallFacts:
    """A prompt is estimated to have one token for each four bytes (UTF-8) that a template may render. A grammar is expected to force as
    much as in its latest answers, as far as their usage figures tell, and nothing at first. No prompt is thought to be over `longest`, the
    model's context, and no answer over `most` tokens."""

    def __init__(self, longest: int, most: int | None = None) -> None:
        self._longest = longest
        self._most = longest if most is None else most
        self._forced: OrderedDict[str, float] = OrderedDict()

    def prompt(self, body: Mapping[str, Any]) -> PromptFacts:
        messages = body.get("messages")
        turns = messages if isinstance(messages, list) else []
        instructions = sum(1 for _ in takewhile(_instructs, turns))
        begins = instructions or 1
        beginning = list(_texts([body.get("tools"), body.get("prompt"), turns[:begins]]))
        most = self._longest * CHARACTERS_PER_TOKEN
        chat = _size(turns, _NO_TEXT) + _size([body.get(name) for name in _TEMPLATE_FIELDS])
        prompts = chain([chat], _prompts(body.get("prompt")), _embeddings(body))
        characters = sum(min(most, each) for each in prompts)
        longest = LONGEST if instructions and body.get("prompt") is None else FIRST
        return PromptFacts(characters // CHARACTERS_PER_TOKEN, _name(beginning, longest))

    def answers(self, endpoint: Endpoint, body: Mapping[str, Any], prompt_tokens: int) -> int:
        """The tokens that all answers may have at most."""
        extra = body.get("vllm_xargs")
        bounded = extra.get(MOST_ARGUMENT) if isinstance(extra, dict) else None
        most = min(self._most, bounded) if isinstance(bounded, int) else self._most
        return asked_tokens(endpoint, body, prompt_tokens, self._longest, most) - prompt_tokens

    def forced(self, key: str) -> int:
        return min(self._longest, round(self._forced.get(key, 0.0)))

    def answered(self, key: str, piece: str) -> None:
        """A piece of an answer under the grammar `key`; most tell nothing."""
        if '"forced_tokens"' not in piece:
            return
        told = [int(digits) for digits in _FORCED.findall(piece)]
        if not told:
            return
        known = self._forced.get(key, float(told[-1]))
        self._forced[key] = known + NEWEST * (told[-1] - known)
        self._forced.move_to_end(key)
        if len(self._forced) > REMEMBERED:
            self._forced.popitem(last=False)


def _instructs(message: object) -> bool:
    return isinstance(message, dict) and isinstance(role := message.get("role"), str) and role in INSTRUCTIONS


def _name(beginning: list[str | int], longest: int) -> str:
    parts, length = list[str](), 0
    for one in islice(beginning, NAMED_BY):
        parts.append(one if isinstance(one, str) else str(one) if one.bit_length() <= TOKEN_BITS else TOO_LONG)
        length += len(parts[-1]) + 1
        if length > longest:
            break
    text = "\n".join(parts)[:longest]
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest() if len(text) >= SHORTEST else ""


def _characters(text: str | int) -> int:
    """Of a text in UTF-8: an ideogram or an emoji is a token or more. A number is a token or more."""
    if not isinstance(text, str):
        return max(CHARACTERS_PER_TOKEN, text.bit_length() // BITS_PER_DIGIT)
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _size(value: object, images: frozenset[str] = frozenset()) -> int:
    """The characters of all texts, names and numbers in `value`. With more than `LOOKED_AT` values, the size of its JSON. Members with a
    name of `images` count as an image."""
    left, characters = [value], 0
    for _ in range(LOOKED_AT):
        if not left:
            return characters
        found = left.pop()
        if isinstance(found, str | int):
            characters += _characters(found)
        elif isinstance(found, float):
            characters += FLOAT_CHARACTERS
        elif isinstance(found, list):
            left += found[: LOOKED_AT + 1]
        elif isinstance(found, dict):
            characters += IMAGE_TOKENS * CHARACTERS_PER_TOKEN * sum(name in found for name in images)
            left += islice(found, LOOKED_AT + 1)
            left += [item for name, item in islice(found.items(), LOOKED_AT + 1) if name not in images]
    return _json_size(value)


def _json_size(value: object) -> int:
    try:
        return len(msgspec.json.encode(value))
    except (RecursionError, TypeError, ValueError):  # of a job of the cluster, which may send what is no JSON; it is refused
        return 0


def _embeddings(body: Mapping[str, Any]) -> Iterator[int]:
    """For each of a completion's embeddings, the characters of a text with as many tokens."""
    embeds = body.get("prompt_embeds")
    for one in embeds if isinstance(embeds, list) else (embeds,):
        if isinstance(one, str):
            yield len(one) * CHARACTERS_PER_TOKEN // EMBEDDING_CHARACTERS


def _prompts(prompt: object) -> Iterator[int]:
    """The characters of each prompt of a completion: one or several, of texts or token ids. What is neither is refused."""
    several = isinstance(prompt, list) and prompt and not isinstance(prompt[0], int)
    for one in islice(prompt, LOOKED_AT) if several and isinstance(prompt, list) else (prompt,):
        if isinstance(one, str):
            yield _characters(one)
        elif isinstance(one, list) and one and isinstance(one[0], int):
            yield len(one) * CHARACTERS_PER_TOKEN


def _texts(value: object) -> Iterator[str | int]:
    """All texts and numbers in it, in their order, without recursion: a body may be as deep as it likes."""
    left = [value]
    for _ in range(LOOKED_AT):
        if not left:
            return
        found = left.pop()
        if isinstance(found, str | int):
            yield found
        elif isinstance(found, list):
            left += found[LOOKED_AT::-1]
        elif isinstance(found, dict):
            left += [item for name, item in found.items() if name not in _NO_TEXT][::-1]
