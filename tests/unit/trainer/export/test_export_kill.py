import multiprocessing
import os
import signal
import sys
import time

import pytest

from ddpk8s_trainer.export.place import publish, settle
from ddpk8s_trainer.export.write import check, write

# Forked, since to import torch anew takes seconds; killed for real.
fork = multiprocessing.get_context("fork")


@pytest.fixture
def directories(tmp_path):
    """A checked new model beside an old one: (new, old)."""
    new, old = tmp_path / ".partial-model", tmp_path / "model"
    for directory, text in ((new, "new"), (old, "old")):
        directory.mkdir()
        (directory / "weights").write_text(text)
    return new, old


def publish_and_die(new, old, rename):
    """Publish, and be killed just before the rename of that number."""
    renames = []

    def hook(event, arguments):
        if event == "os.rename":
            renames.append(arguments)
            if len(renames) == rename:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    publish(new, old)


@pytest.mark.parametrize(("rename", "left"), [(1, "old"), (2, "old"), (3, "new")])
def test_one_whole_model_is_in_place_when_a_killed_export_is_settled(directories, rename, left):
    new, old = directories
    process = fork.Process(target=publish_and_die, args=(new, old, rename))
    process.start()
    process.join(60)
    assert process.exitcode == (0 if rename == 3 else -signal.SIGKILL)
    settle(old)
    assert (old / "weights").read_text() == left


def test_only_the_new_model_is_left_when_published_after_a_kill(directories):
    new, old = directories
    process = fork.Process(target=publish_and_die, args=(new, old, 2))
    process.start()
    process.join(60)
    settle(old)
    publish(new, old)
    assert (old / "weights").read_text() == "new"
    assert list(old.parent.iterdir()) == [old]


def test_the_old_model_is_untouched_when_killed_in_the_check(
    trained, tokenizer, labels, samples, directories
):
    new, old = directories
    model, initial = trained
    write(new, model, tokenizer, labels, samples, initial)
    process = fork.Process(target=lambda: (check(new), publish(new, old)))
    process.start()
    time.sleep(0.5)  # the check takes seconds
    process.kill()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert (old / "weights").read_text() == "old"
