"""Whether the checkpoint directory is the same on all nodes is found out before anything starts."""

import time

from tests.agent.gang import Gang
from tests.agent.harness import until


def two_directories(gang: Gang) -> None:
    """Give each node a checkpoint directory of its own, by the same name."""
    gang.document["checkpointDirectory"] = "checkpoints"
    for node in range(gang.nnodes):
        (gang.directory / f"home-{node}").mkdir()
        gang.prefix[node] = ["env", "-C", str(gang.directory / f"home-{node}")]


def test_all_end_with_78_when_the_checkpoint_directory_is_not_shared(gang: Gang) -> None:
    gang.timing["visible"] = 1.0
    gang.script("touch('never')")
    two_directories(gang)
    gang.start_all()
    assert gang.end_all() == [78, 78]
    for node in range(2):
        word = gang.ended[node].word
        assert word["message"].startswith("spec.training.checkpoint.directory: node 1 does not see")
        assert "hint: " in gang.err(node)
        assert "ReadWriteMany" in gang.err(node)
    assert not (gang.directory / "never").exists()


def test_it_starts_when_the_checkpoint_directory_takes_a_moment_to_show_what_is_new(gang: Gang) -> None:
    gang.script("")
    two_directories(gang)
    here, there = (gang.directory / f"home-{node}" / "checkpoints" / ".ddpk8s" for node in range(2))
    gang.start_all()
    mark = until(lambda: next(here.glob("*.mark"), None), "node 0's mark")
    time.sleep(1.0)
    there.mkdir(parents=True)
    (there / mark.name).write_text(mark.read_text())
    assert gang.end_all() == [0, 0]
    assert not list(here.glob("*.mark")), "it is removed in the end"


def test_a_node_leaves_at_once_when_it_is_stopped_while_it_looks_for_the_mark(gang: Gang) -> None:
    gang.script("")
    two_directories(gang)
    gang.start_all()
    time.sleep(1.0)
    began = time.monotonic()
    gang.nodes[1].terminate()
    assert gang.end_node(1).code == 143
    assert time.monotonic() - began < gang.timing.get("visible", 20) / 2
