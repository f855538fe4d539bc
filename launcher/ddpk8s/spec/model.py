"""The `training.model` section: model and tokenizer."""

from typing import Any, Literal

from ddpk8s.spec.base import Section, field


class BuildTokenizer(Section):
    """Make a tokenizer from the training texts, for a model with random weights."""

    vocab_size: int = field(
        "Size of the vocabulary, special tokens included.", 16000, unit="tokens", ge=100, example=16000
    )
    type: Literal["bpe", "wordpiece"] = field(
        "`bpe` learns pieces of several characters, also in Chinese (shorter sequences); `wordpiece` "
        "does as BERT: "
        "every Chinese character is a token of its own.",
        "bpe",
    )
    min_frequency: int = field("Pieces seen less often are not made.", 2, unit="occurrences", ge=1)


class Model(Section):
    """The model: pretrained from a directory or the hub, or random weights from a configuration."""

    path: str | None = field(
        "Hugging Face model directory, or a hub id such as `bert-base-chinese`. Either this or `config`.",
        None,
        example="bert-base-chinese",
    )
    revision: str | None = field("Branch, tag or commit on the hub.", None, example="main")
    config: dict[str, Any] | None = field(
        "Configuration of a model with random weights, as in a Hugging Face `config.json`; `model_type` "
        "is required. "
        "`vocab_size`, `pad_token_id` and the labels are filled in.",
        None,
        example={"model_type": "bert", "hidden_size": 128, "num_hidden_layers": 2},
    )
    tokenizer: str | None = field(
        "Tokenizer directory or hub id; by default the one at `path`.", None, example="/models/bert"
    )
    build_tokenizer: BuildTokenizer | None = field(
        "Make the tokenizer from the training texts (with `config`).", None
    )
    labels: list[str] | None = field(
        "Names of the labels in the order of their ids. By default they are taken from the training "
        "data, sorted.",
        None,
        example=["negative", "positive"],
    )
    dropout: float | None = field(
        "Probability of every dropout of the model; by default what the model's configuration says.",
        None,
        ge=0,
        lt=1,
        example=0.1,
    )
    trust_remote_code: bool = field("Run code that comes with the model.", False)
