"""Make a tokenizer from texts, the same from the same texts on every machine."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import xxhash
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from ddpk8s.spec.training import BuildTokenizer

SPECIAL_TOKENS = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
MOST_BYTES = 64 << 20
"""Texts beyond this size are sampled: pieces hardly change any more, but time and memory grow."""
SHIFT = 0x40000
"""Added to a character inside a word, it gives one that no text uses: planes 4 to 7 are unassigned."""


def build_tokenizer(texts: Iterable[str], settings: BuildTokenizer, directory: Path, max_length: int) -> None:
    """Learn a tokenizer and save it as a Hugging Face tokenizer directory.

    Args:
        texts: The training texts, in any order.
        settings: The section `spec.training.model.buildTokenizer`.
        directory: Where to save; made.
        max_length: Longest sequence the model is trained on, noted in the tokenizer.
    """
    from transformers import PreTrainedTokenizerFast

    named = {f"{kind}_token": token for kind, token in SPECIAL_TOKENS.items()}
    wrapped: Any = PreTrainedTokenizerFast(
        tokenizer_object=learn(texts, settings),
        model_max_length=max_length,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **named,
    )
    wrapped.save_pretrained(str(directory))


def learn(texts: Iterable[str], settings: BuildTokenizer) -> Tokenizer:
    """Return a tokenizer learned from texts, which frames them as BERT does."""
    tokenizer = (_learn_bpe if settings.type == "bpe" else _learn_wordpiece)(texts, settings)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def sampled(texts: Iterable[str], total_bytes: int) -> Iterator[str]:
    """Yield all texts when they are about `MOST_BYTES` or less, else an even share, chosen by their hash."""
    share = min(1.0, MOST_BYTES / max(1, total_bytes))
    threshold = int(share * 2**64)
    return (text for text in texts if share == 1.0 or xxhash.xxh3_64_intdigest(text.encode()) < threshold)


def _learn_bpe(texts: Iterable[str], settings: BuildTokenizer) -> Tokenizer:
    """Learn byte-pair pieces that may span several characters, also where no blank stands between words.

    Cut beforehand are only words at blanks (kept as ``▁`` in front of the next word), punctuation, and digits
    in threes, so that a piece never crosses them.
    """
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Lowercase(),
            normalizers.Replace(Regex(r"[\s\p{Cc}]+"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(prepend_scheme="never"),
            pre_tokenizers.Punctuation("isolated"),
            pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"),
        ]
    )
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="never")
    tokenizer.train_from_iterator(texts, _trainer(settings, alphabet=settings.vocab_size // 2))
    return tokenizer


def _learn_wordpiece(texts: Iterable[str], settings: BuildTokenizer) -> Tokenizer:
    """Learn BERT's WordPiece: Chinese characters stand alone, other words are cut into ``pie ##ce ##s``.

    The library's own trainer numbers ``##`` pieces in the order of a hash map, another one in every process,
    and breaks ties by that. So inner characters are shifted to code points of their own, plain byte-pair
    pieces are learned from them, which is deterministic, and the pieces are written back with ``##``.
    """
    cut_words = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    cut_words.normalizer = normalizers.BertNormalizer(lowercase=True)
    cut_words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    def marked() -> Iterator[str]:
        for text in texts:
            normal = cut_words.normalizer.normalize_str(text)
            yield " ".join(_mark(word) for word, _ in cut_words.pre_tokenizer.pre_tokenize_str(normal))

    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    learner.train_from_iterator(marked(), _trainer(settings, alphabet=settings.vocab_size * 3 // 4))
    learned = sorted(learner.get_vocab().items(), key=lambda item: item[1])
    vocabulary = {_unmark(piece): number for piece, number in learned}
    cut_words.model = models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100)
    cut_words.decoder = decoders.WordPiece()
    return cut_words


def _trainer(settings: BuildTokenizer, alphabet: int) -> Any:
    """Return a trainer; `alphabet` bounds the single characters, so that rare ones leave room for pieces."""
    return trainers.BpeTrainer(
        vocab_size=settings.vocab_size,
        min_frequency=settings.min_frequency,
        limit_alphabet=alphabet,
        special_tokens=list(SPECIAL_TOKENS.values()),
        show_progress=False,
    )


def _mark(word: str) -> str:
    return word[0] + "".join(chr(ord(character) + SHIFT) for character in word[1:] if ord(character) < SHIFT)


def _unmark(piece: str) -> str:
    inner = SHIFT <= ord(piece[0]) < 2 * SHIFT
    plain = "".join(chr(ord(c) - SHIFT) if SHIFT <= ord(c) < 2 * SHIFT else c for c in piece)
    return f"##{plain}" if inner else plain
