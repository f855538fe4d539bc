"""Data as users have them: real files in a temporary directory."""

import json
from pathlib import Path

import pytest

from ddpk8s.spec.training import BuildTokenizer, Data, Model, Training
from ddpk8s_trainer.data.read import read_samples
from ddpk8s_trainer.data.sources import find_source
from ddpk8s_trainer.errors import DataMistake

TEXTS = [f"房间{'很' * (i % 7)}干净、服务{'不' if i % 2 else ''}好。 Room {i * 37}" for i in range(40)]
ROWS = [{"text": text, "label": "negative" if i % 2 else "positive"} for i, text in enumerate(TEXTS)]


@pytest.fixture
def rows():
    """Forty short reviews with two labels."""
    return [dict(row) for row in ROWS]


@pytest.fixture
def write_jsonl(tmp_path):
    def write(name, rows):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
        return path

    return write


@pytest.fixture
def read():
    """Read all samples of a file: texts, pairs, labels, places."""

    def read_all(path, **settings):
        data = Data(train=str(path), **settings)
        chunks = list(read_samples(find_source(data, "train"), data))
        return {
            "texts": [text for chunk in chunks for text in chunk.texts],
            "pairs": [text for chunk in chunks for text in chunk.pairs or ()],
            "labels": [label for chunk in chunks for label in chunk.labels],
            "places": [chunk.chunk.where(i) for chunk in chunks for i in range(len(chunk.texts))],
        }

    return read_all


@pytest.fixture
def mistake(read):
    """Read a file that has a mistake; return message and hint."""

    def read_wrong(path, **settings):
        with pytest.raises(DataMistake) as caught:
            read(path, **settings)
        assert caught.value.exit_code == 78
        return caught.value.message, caught.value.hint

    return read_wrong


@pytest.fixture
def training():
    """Make a trainer's configuration that builds its tokenizer."""

    def make(train, validation=None, labels=None, **settings):
        return Training(
            model=Model(
                config={"model_type": "bert"},
                build_tokenizer=BuildTokenizer(vocab_size=200, min_frequency=1),
                labels=labels,
            ),
            data=Data(
                train=str(train),
                validation=None if validation is None else str(validation),
                **{"max_length": 32, **settings},
            ),
        )

    return make


@pytest.fixture(scope="session")
def tokenizer_directory(tmp_path_factory) -> Path:
    """A small BERT-like tokenizer."""
    from ddpk8s_trainer.data.build_tokenizer import build_tokenizer

    directory = tmp_path_factory.mktemp("tokenizer")
    build_tokenizer(TEXTS, BuildTokenizer(vocab_size=300, min_frequency=1), directory, 64)
    return directory
