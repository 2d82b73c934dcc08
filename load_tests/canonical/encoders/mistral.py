"""The vocabulary of Mistral 7B, which comes with `mistral_common`, as `tokenizers` has SentencePiece's: a real one of characters."""

from __future__ import annotations

from importlib.metadata import files

import sentencepiece
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers
from transformers import PreTrainedTokenizerFast

from grammar_service.canonical.letters import SPACE
from grammar_service.errors import UnusableFile
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.probes import Probes, project_texts

PACKAGE, FILE = "mistral_common", "tokenizer.model.v1"
CHARACTERS = f'\n a"1./é🎉 e日本東 x{SPACE}  1Ж𝄞\u00a0龘    '
"""Of some there is a token, of others there are bytes only."""


def mistral_tokenizer() -> GrammarTokenizer:
    """Raises UnusableFile: the file is not there."""
    found = [file for file in files(PACKAGE) or () if file.name == FILE]
    if not found:
        raise UnusableFile(f"{FILE} is not in {PACKAGE}")
    model = sentencepiece.SentencePieceProcessor(model_file=str(found[0].locate()))
    vocab = {model.id_to_piece(number): number for number in range(model.vocab_size())}
    specials = [AddedToken(token, special=True, normalized=False) for token in ("<unk>", "<s>", "</s>")]
    tokenizer = Tokenizer(models.BPE(vocab, _merges(model, vocab), unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.add_special_tokens(specials)
    return GrammarTokenizer.from_huggingface(PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>"))


def mistral_probes(seed: int) -> Probes:
    tokenizer = mistral_tokenizer()
    texts = [text.replace(SPACE, "_")[:60_000] for text in project_texts()]
    return Probes(tokenizer, tokenizer.canonical, texts, seed, CHARACTERS)


def _merges(model: sentencepiece.SentencePieceProcessor, vocab: dict[str, int]) -> list[tuple[str, str]]:
    """As `transformers` finds them: every two pieces that make a third one, by its score, longer ones first."""
    found: list[tuple[float, int, int, str, str]] = []
    for piece, number in vocab.items():
        if model.is_byte(number) or model.is_control(number) or model.is_unknown(number):
            continue
        halves = [(piece[:at], piece[at:]) for at in range(1, len(piece))]
        known = [(left, right) for left, right in halves if left in vocab and right in vocab]
        known.sort(key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))
        found += [(model.get_score(number), len(left), len(right), left, right) for left, right in known]
    return [(left, right) for *_, left, right in sorted(found, key=lambda merge: merge[:3], reverse=True)]
