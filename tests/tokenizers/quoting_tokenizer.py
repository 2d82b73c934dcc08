"""A vocabulary whose tokens reach across the quotes, escapes and commas of JSON in every way that matters for names."""

from __future__ import annotations

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from grammar_service.vocabulary.tokenizer import GrammarTokenizer

_WORDS = [
    *('""', '"a"', '"a":', ' "a":', '"ab"', 'a"', 'b":', 'ab"', ' "b": ', '":', '": ', '": "', '", "', '","', '","a', '", "a"'),
    *('{"', '{"a":', '{"a": 1', '{"a": {"a":', '{"a": 1, "a": ', '"a": 1, "a": ', '}, "a":', '1, "a":', ', "', ', "a":', ', "b": "'),
    *("\\u", "\\u00", "\\u0061", '\\u0061"', '61"', '061":', '0061"', '1":', "\\ud83d", '\\ude00"', "ude00", 'e00":', 'n"'),
    *('\\n"', '\\"', '\\"":', '"}', '"}}', "1}", '": {"', '[{"a": ', '": 1, "', '": 1, "b"', '"   ', 'b", "a": "'),
    *("0,", "1,", ", 1", ", 0", "10", "-0", "0]", ".0", "1.0", "e1", "1, 1", "0, 0", '["', '["a", "', ", -1, ", "1]"),
    *("true", "null", "12", "ab", "ba", "  "),
    *("[]", " []", "[],", "[], ", "{}", "{},", ", {}", "[]]", "{}, {}", "[],[]", "{}]", '{}, {"', '[], "a"'),
    *("},", "}}", "]}", "]]", "] ]", "]},", "}, {", '}, {"', "}],", "}}]", "},{}", "}, []", "}, {}]", '},{"a":1}', '"}, {"', '"},', '"]'),
    *('"],', '"]}', 'a"}', 'b"]', '"}]', 'a"},', '", {}', '": {}', '": {}}', '": []}', '":1}', '": ""}', ": 1}", ":1}, "),
    *("true}", "e}", "e,"),
    *('\\",', '\\","', '\\"}', '"",', '\\","a', "\\\\"),
    *("e12345678", "1234567", '", 1,', '", 0', '", 1]', "0 ", "1 ]", '"ab",', '"a", ', ', "a",', "b,", 'b",', '"b"]'),
]
"""Besides all single bytes."""
STOP = "<|end|>"


def quoting_tokenizer() -> GrammarTokenizer:
    table = _characters()
    spelt = ["".join(table[byte] for byte in word.encode()) for word in _WORDS]
    words = [STOP, *table.values(), *dict.fromkeys(word for word in spelt if len(word) > 1)]
    tokenizer = Tokenizer(models.BPE(vocab={word: index for index, word in enumerate(words)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(STOP, special=True)])
    return GrammarTokenizer.from_huggingface(PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=STOP))


def _characters() -> dict[int, str]:
    """How byte-level vocabularies write each byte: printable ones as they are, the others by further characters."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{byte: chr(byte) for byte in plain}, **{byte: chr(0x100 + index) for index, byte in enumerate(others)}}
