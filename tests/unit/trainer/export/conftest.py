"""A tiny BERT with a tokenizer, and batches for it."""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoModelForSequenceClassification, BertConfig, PreTrainedTokenizerFast

from ddpk8s_trainer.export import parameters_digest

LABELS = ["差评", "neutral", "<b>good</b>"]
WORDS = [*"服务很好下次还来差评", "mixed", "case", "with", "and", "two", "blanks", "good", "bad"]


@pytest.fixture(scope="session")
def labels():
    return LABELS


@pytest.fixture(scope="session")
def tokenizer():
    vocabulary = {
        word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *dict.fromkeys(WORDS)])
    }
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


@pytest.fixture
def trained(tokenizer):
    """A model that differs from its start: (model, digest of the start)."""
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=40,
        num_labels=len(LABELS),
    )
    model = AutoModelForSequenceClassification.from_config(config)
    initial = parameters_digest(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.train(), initial


@pytest.fixture(scope="session")
def samples(tokenizer):
    """Two collated batches of ragged samples."""
    texts = ["服务很好", "差评", "good and bad with 服务", "bad", "下次还来 mixed case two blanks"] * 4
    return [
        dict(tokenizer(part, padding=True, return_tensors="pt")) | {"labels": torch.zeros(len(part))}
        for part in (texts[:7], texts[7:])
    ]
