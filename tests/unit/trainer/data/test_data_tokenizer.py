"""Tokenizers: built ones are the same everywhere, loaded ones are checked."""

import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import product
from threading import Thread

import pytest
from tokenizers import Tokenizer, models
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from ddpk8s.spec.training import BuildTokenizer, Model
from ddpk8s_trainer.data.build_tokenizer import build_tokenizer, sampled
from ddpk8s_trainer.data.tokenizer import content_of, load_tokenizer, tokenizer_name
from ddpk8s_trainer.errors import ModelMistake

# Words with many pairs of equal frequency: whatever breaks ties by chance shows.
TIED = ["".join(word) for word in product("abcdefgh", repeat=4)]
TEXTS = ["酒店的房间很干净。", "酒店的服务很好!", "Running 12345 rooms"] * 3
LEARN = """
import hashlib, pathlib, sys
from ddpk8s.spec.training import BuildTokenizer
from ddpk8s_trainer.data.build_tokenizer import learn
texts = pathlib.Path(sys.argv[1]).read_text("utf-8").split("\\n")
for kind in ("bpe", "wordpiece"):
    learned = learn(texts, BuildTokenizer(type=kind, vocab_size=100, min_frequency=1))
    print(kind, learned.get_vocab_size(), hashlib.sha256(learned.to_str().encode()).hexdigest())
"""


def built(directory, kind, size=200):
    build_tokenizer(TEXTS, BuildTokenizer(type=kind, vocab_size=size, min_frequency=1), directory, 64)
    return AutoTokenizer.from_pretrained(directory)


def test_every_process_learns_the_same(tmp_path):
    (tmp_path / "texts").write_text("\n".join(TIED), "utf-8")
    said = set()
    for threads in ("1", "2", "2", "2"):
        environment = {**os.environ, "RAYON_NUM_THREADS": threads, "TOKENIZERS_PARALLELISM": "true"}
        command = [sys.executable, "-c", LEARN, str(tmp_path / "texts")]
        said.add(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
    assert len(said) == 1
    assert [line.split()[:2] for line in said.pop().splitlines()] == [["bpe", "100"], ["wordpiece", "100"]]


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_special_tokens_come_first_and_frame_texts_and_pairs(tmp_path, kind):
    tokenizer = built(tmp_path, kind)
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert tokenizer.convert_ids_to_tokens(list(range(5))) == specials
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.mask_token_id) == (0, 1, 4)
    assert tokenizer.model_max_length == 64
    one = tokenizer("酒店")
    assert (one["input_ids"][0], one["input_ids"][-1]) == (2, 3)
    assert set(one["token_type_ids"]) == {0}
    two = tokenizer("酒店", "服务")
    first = two["input_ids"].index(3) + 1
    assert two["token_type_ids"] == [0] * first + [1] * (len(two["input_ids"]) - first)
    assert two["input_ids"][-1] == 3


def test_bpe_learns_pieces_of_several_characters_but_not_over_punctuation_and_blanks(tmp_path):
    tokenizer = built(tmp_path, "bpe")
    pieces = ["酒店的房间很干净", "。", "酒店的", "服", "务"]
    assert tokenizer.tokenize("酒店的房间很干净。酒店的服务") == pieces
    assert tokenizer.tokenize("RUNNING  \uff11\uff12345 Rooms") == ["running", "▁", "123", "45", "▁rooms"]
    assert tokenizer.decode(tokenizer("running 12345 rooms")["input_ids"][1:-1]) == "running 12345 rooms"


def test_wordpiece_takes_chinese_characters_one_by_one_and_marks_inner_pieces(tmp_path):
    tokenizer = built(tmp_path, "wordpiece", 400)
    assert tokenizer.tokenize("酒店 Rooms runnin") == ["酒", "店", "rooms", "runn", "##in"]
    assert tokenizer.tokenize("xyz酒") == ["[UNK]", "酒"]
    assert any(token.startswith("##") for token in tokenizer.get_vocab())
    assert tokenizer.decode(tokenizer("rooms runnin")["input_ids"][1:-1]) == "rooms runnin"


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_the_vocabulary_is_no_larger_than_asked(tmp_path, kind):
    texts = ["".join(chr(0x4E00 + (i * 7 + j) % 3000) for j in range(20)) for i in range(600)]
    build_tokenizer(texts, BuildTokenizer(type=kind, vocab_size=500), tmp_path, 64)
    assert len(AutoTokenizer.from_pretrained(tmp_path)) <= 500


def test_unseen_characters_become_unknown(tmp_path):
    assert built(tmp_path, "bpe").tokenize("龘") == ["[UNK]"]


def test_texts_are_sampled_evenly_only_when_they_are_too_many():
    texts = [f"text {i}" for i in range(4000)]
    assert list(sampled(texts, 1000)) == texts
    quarter = list(sampled(texts, 256 << 20))
    assert 900 < len(quarter) < 1100
    assert quarter == list(sampled(texts, 256 << 20))


def test_a_tokenizer_is_loaded_from_its_directory(tokenizer_directory):
    tokenizer = load_tokenizer(str(tokenizer_directory), Model(path="x"), "spec.training.model.tokenizer")
    again = load_tokenizer(str(tokenizer_directory), Model(path="x"), "spec.training.model.tokenizer")
    assert tokenizer("房间很干净")["input_ids"] == again("房间很干净")["input_ids"]
    assert content_of(tokenizer) == content_of(again)


def fault(name, field="spec.training.model.path"):
    with pytest.raises(ModelMistake) as caught:
        load_tokenizer(str(name), Model(path=str(name)), field)
    assert caught.value.exit_code == 78
    return caught.value.message, caught.value.hint


def test_a_path_that_is_no_directory_is_a_mistake(tmp_path):
    (tmp_path / "bert").mkdir()
    assert fault(tmp_path / "brt") == (
        f"spec.training.model.path {tmp_path / 'brt'} is no directory",
        f"directories in {tmp_path}: bert",
    )
    (tmp_path / "bert" / "tokenizer.json").write_text("{}")
    assert (
        fault(tmp_path / "bert" / "tokenizer.json")[1]
        == f"name the directory that holds it: {tmp_path / 'bert'}"
    )


def test_a_directory_without_a_tokenizer_is_a_mistake(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    message, hint = fault(tmp_path)
    assert message.startswith(
        f"spec.training.model.path {tmp_path}: no tokenizer can be loaded from this directory"
    )
    assert hint == "it needs tokenizer.json or the vocabulary files, and holds: model.safetensors"


def test_a_tokenizer_without_padding_is_a_mistake(tmp_path):
    plain = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="b"))
    )
    plain.save_pretrained(tmp_path)
    assert fault(tmp_path, "spec.training.model.tokenizer") == (
        f"spec.training.model.tokenizer {tmp_path}: the tokenizer has no padding token, and batches need one",
        "set one and save the tokenizer again: tokenizer.pad_token = tokenizer.eos_token",
    )


def python(code, **environment):
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )


class NotFound(BaseHTTPRequestHandler):
    """A hub that knows no page."""

    def do_HEAD(self):
        self.send_error(404)


def test_a_hub_is_reachable_when_it_answers_at_all():
    with HTTPServer(("127.0.0.1", 0), NotFound) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        answers = {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_HUB_OFFLINE": "0"}
        code = "from ddpk8s_trainer.data.tokenizer import hub_reachable; print(hub_reachable())"
        assert python(code, **answers).stdout == "True\n"
        assert python(code, **{**answers, "HF_HUB_OFFLINE": "1"}).stdout == "False\n"
        server.shutdown()
    assert python(code, **answers).stdout == "False\n"


def test_a_hub_out_of_reach_is_said_without_long_retries(tmp_path):
    code = (
        "from ddpk8s.spec.training import Model; from ddpk8s_trainer.data.tokenizer import load_tokenizer\n"
        "try: load_tokenizer('owner/model', Model(path='owner/model'), 'spec.training.model.path')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = python(code, HF_HOME=str(tmp_path), HF_ENDPOINT="http://127.0.0.1:9")
    start = "ModelMistake spec.training.model.path owner/model: no such directory, and the hub has no such tokenizer or"
    assert done.stdout.startswith(start)
    assert "hint: without network, copy the model here and name its directory" in done.stdout
    assert "Retrying" not in done.stderr


def test_the_tokenizer_is_the_named_one_then_the_one_to_build_then_the_one_of_the_model():
    build = BuildTokenizer()
    assert tokenizer_name(Model(path="m", tokenizer="t")) == ("t", "spec.training.model.tokenizer")
    assert tokenizer_name(Model(config={}, build_tokenizer=build)) is None
    assert tokenizer_name(Model(path="m")) == ("m", "spec.training.model.path")
    with pytest.raises(ModelMistake, match="no tokenizer"):
        tokenizer_name(Model(config={"model_type": "bert"}))
