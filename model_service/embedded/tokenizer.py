"""Trains the embedded model's tokenizer: byte-level BPE, digits one by one, a chat template with tools."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from model_service.embedded.tasks import exercises

VOCABULARY_SIZE = 2048
END = "<|end|>"
PAD = "<|pad|>"
SPECIAL = (PAD, END, "<|system|>", "<|user|>", "<|assistant|>")
TOOL_MARKS = ("<tool_call>", "</tool_call>")

CHAT_TEMPLATE = (
    "{%- if tools %}<|system|>Tools:"
    "{%- for tool in tools %} {{ tool.function.name }}("
    "{{- tool.function.parameters.properties.keys() | join(', ') if tool.function.parameters else '' }}){% endfor %}<|end|>"
    "{%- endif %}"
    "{%- for message in messages %}"
    "{%- set content = message.content if message.content is string else "
    "(message.content | map(attribute='text') | join('') if message.content else '') %}"
    "<|{{ 'user' if message.role == 'tool' else 'system' if message.role == 'developer' else message.role }}|>{{ content }}"
    "{%- for call in message.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": '
    "{{ call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}}\n"
    "</tool_call>{% endfor %}<|end|>"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}<|assistant|>{% endif %}"
)


def train_tokenizer(seed: int, samples: int) -> PreTrainedTokenizerFast:
    """A tokenizer of exactly `VOCABULARY_SIZE` entries; the same seed gives the same one."""
    tokenizer = trained_on(_texts(seed, samples), VOCABULARY_SIZE - len(TOOL_MARKS))
    tokenizer.backend_tokenizer.add_tokens(list(TOOL_MARKS))
    return tokenizer


def trained_on(texts: Iterable[str], size: int) -> PreTrainedTokenizerFast:
    """A tokenizer of at most `size` entries, with the chat template."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token=END, pad_token=PAD, clean_up_tokenization_spaces=False, model_max_length=2048
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def _texts(seed: int, samples: int) -> Iterable[str]:
    for exercise in islice(exercises(seed, held_out=False), samples):
        yield exercise.question
        yield exercise.answer
        for name, parameters in exercise.tools.items():
            yield f"{name}({', '.join(parameters)})"
