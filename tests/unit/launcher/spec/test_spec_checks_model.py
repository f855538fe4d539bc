"""The model: source, tokenizer, labels, and numbers of its configuration."""

from collections.abc import Callable

import pytest

Judge = Callable[..., object]
M = "spec.training.model"
BERT = "model_type: bert, hidden_size: 128, num_attention_heads: 4, max_position_embeddings: 256"
BUILT = "buildTokenizer: {}"


@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("{}", f"{M} has neither `path` nor `config`"),
        (f"{{path: a, config: {{{BERT}}}, {BUILT}}}", f"{M} has both `path` and `config`, but must have one"),
        (f"{{config: {{{BERT}}}}}", f"{M} has a `config` but no tokenizer"),
        (f"{{config: {{hidden_size: 64}}, {BUILT}}}",
            f"{M}.config has no `model_type`, so nobody knows what model it is"),
        (f"{{config: {{model_type: 3}}, {BUILT}}}",
            f"{M}.config has no `model_type`, so nobody knows what model it is"),
        (f"{{config: {{{BERT}}}, {BUILT}, tokenizer: /data/t}}",
            f"{M}.buildTokenizer and {M}.tokenizer are both given, but exclude each other"),
        (f"{{path: a, {BUILT}}}",
            f"{M}.buildTokenizer is set but {M}.path names a pretrained model, which knows only its own tokens"),
        (f"{{config: {{model_type: bert, hidden_size: 100, num_attention_heads: 3}}, {BUILT}}}",
            f"{M}.config.hidden_size is 100, no multiple of {M}.config.num_attention_heads, which is 3"),
        (f"{{config: {{model_type: bert, hidden_size: 0}}, {BUILT}}}",
            f"{M}.config.hidden_size is 0, but must be a whole number above 0"),
        (f'{{config: {{model_type: bert, num_hidden_layers: "2"}}, {BUILT}}}',
            f"{M}.config.num_hidden_layers is '2', but must be a whole number above 0"),
        (f"{{config: {{model_type: bert, max_position_embeddings: 128}}, {BUILT}}}",
            f"spec.training.data.maxLength is 256 but {M}.config.max_position_embeddings is 128"),
        (f"{{config: {{model_type: xlm-roberta, max_position_embeddings: 257}}, {BUILT}}}",
            "spec.training.data.maxLength is 256 "
            f"but {M}.config.max_position_embeddings is 257, of which 255 can be used"),
        ("{path: a, labels: [x]}", f"{M}.labels has 1 of at least 2 labels"),
        ("{path: a, labels: []}", f"{M}.labels has 0 of at least 2 labels"),
        ("{path: a, labels: [x, z, x]}", f"{M}.labels has 'x' more than once"),
        ("{path: a, dropout: 1}", f"{M}.dropout is 1, but must be less than 1"),
    ],
)  # fmt: skip
def test_model_is_refused_when_it_cannot_be_made(judge: Judge, model: str, error: str) -> None:
    assert judge(f"{M}={model}").errors == [error]


@pytest.mark.parametrize(
    ("model", "warning"),
    [
        (f"{{config: {{model_type: bert, vocab_size: 99}}, {BUILT}}}",
            f"{M}.config.vocab_size is 99 but {M}.buildTokenizer.vocabSize is 16000, which counts"),
        ("{path: /data/bert, revision: main}",
            f"{M}.revision is set but {M}.path names no model on the hub, so it means nothing"),
        ("{path: ./models/bert/large}",
            f"{M}.path is './models/bert/large', a relative path, which depends on where processes start"),
        ("{path: /models/bert}", f"{M}.path is '/models/bert', which lies in no volume of spec.storage"),
        ("{path: a, tokenizer: /models/bert}",
            f"{M}.tokenizer is '/models/bert', which lies in no volume of spec.storage"),
    ],
)  # fmt: skip
def test_model_is_warned_of_when_it_may_not_be_what_is_meant(judge: Judge, model: str, warning: str) -> None:
    verdict = judge(f"{M}={model}")
    assert verdict.errors == []
    assert verdict.warnings == [warning]


@pytest.mark.parametrize(
    "model",
    [
        "{path: org/model-1.5, revision: main}",
        "{path: /data/bert}",
        f"{{config: {{{BERT}}}, {BUILT}}}",
        f"{{config: {{{BERT}, vocab_size: 500}}, buildTokenizer: {{vocabSize: 500}}}}",
        f"{{config: {{{BERT}}}, tokenizer: org/tokenizer}}",
        "{path: a, labels: [negative, positive]}",
    ],
)
def test_nothing_is_said_when_the_model_can_be_made(judge: Judge, model: str) -> None:
    verdict = judge(f"{M}={model}")
    assert (verdict.errors, verdict.warnings) == ([], [])
