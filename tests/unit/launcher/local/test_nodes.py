"""What each node gets: environment, GPUs, a place for its files, a port to meet at."""

import socket
from pathlib import Path
from typing import Any

import pytest
from tests.unit.launcher.local.harness import local

from ddpk8s.local.directory import RunDirectory
from ddpk8s.local.machine import Machine, free_port, gpu_share
from ddpk8s.local.nodes import agent_environment, size
from ddpk8s.spec.job import TrainingJob


def here(nnodes: int, nproc: int, machine: Machine, **spec: Any) -> TrainingJob:
    return local(machine, nproc, nnodes, **spec).job


@pytest.mark.parametrize(
    ("nodes", "nproc", "cores", "ours", "threads"),
    [
        (2, 1, 8, {}, "4"),
        (2, 2, 8, {}, "2"),
        (4, 2, 2, {}, "1"),
        (2, 1, 8, {"OMP_NUM_THREADS": "3"}, "3"),
        (2, 1, 8, {"OMP_NUM_THREADS": ""}, "4"),
        (1, 2, 8, {}, None),
    ],
)
def test_nodes_share_the_cores_unless_the_user_says_how(
    nodes: int, nproc: int, cores: int, ours: dict[str, str], threads: str | None
) -> None:
    machine = Machine(cores, 0)
    environment = agent_environment(here(nodes, nproc, machine), 0, machine, ours)
    assert environment.get("OMP_NUM_THREADS") == threads


def test_each_node_knows_its_rank_whatever_pod_we_are_in() -> None:
    machine = Machine(8, 0)
    ours = {"JOB_COMPLETION_INDEX": "7", "DDPK8S_NODE_RANK": "5", "HOME": "/home/me"}
    environments = [agent_environment(here(3, 1, machine), node, machine, ours) for node in range(3)]
    assert [environment["DDPK8S_NODE_RANK"] for environment in environments] == ["0", "1", "2"]
    assert all(environment["HOME"] == "/home/me" for environment in environments)
    assert agent_environment(here(1, 1, machine), 0, machine, ours)["DDPK8S_NODE_RANK"] == "0"


@pytest.mark.parametrize(
    ("gpus", "asked", "ours", "shares"),
    [
        (4, 8, {}, ["0,1", "2,3"]),
        (5, 8, {}, ["0,1", "2,3"]),
        (4, 1, {}, ["0", "1"]),
        (2, 8, {"CUDA_VISIBLE_DEVICES": "3, 1"}, ["3", "1"]),
        (1, 8, {}, ["", ""]),
        (4, 0, {}, ["", ""]),
        (0, 8, {}, [None, None]),
    ],
)
def test_no_gpu_is_given_to_two_nodes(
    gpus: int, asked: int, ours: dict[str, str], shares: list[str | None]
) -> None:
    machine = Machine(8, gpus)
    job = local(machine, nnodes=2, resources={"gpu": asked}).job
    got = [agent_environment(job, node, machine, ours).get("CUDA_VISIBLE_DEVICES") for node in range(2)]
    assert got == shares


def test_an_only_node_sees_the_gpus_as_we_do() -> None:
    machine = Machine(8, 4)
    job = local(machine, resources={"gpu": 2}).job
    assert "CUDA_VISIBLE_DEVICES" not in agent_environment(job, 0, machine, {})
    assert gpu_share(1, 2, "a,b,-1,c,d") == "c,d"


def test_the_size_is_told_in_words() -> None:
    machine = Machine(8, 0)
    assert [size(here(*shape, machine)) for shape in ((1, 1), (1, 2), (2, 1), (3, 2))] == [
        "1 process",
        "2 processes",
        "2 nodes x 1 process",
        "3 nodes x 2 processes",
    ]


def test_nodes_keep_their_files_apart_and_node_0_where_an_only_node_has_them(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "mine")
    states = [directory.state("run-1", node) for node in range(3)]
    assert states[0] == directory.state("run-1") == tmp_path / "mine" / "run-1"
    assert not any(a.is_relative_to(b) for a in states for b in states if a is not b)
    for state in states:
        state.mkdir(parents=True)
    plans = [directory.write("agent.json", {"node": node}, node) for node in range(3)]
    assert len({*plans}) == 3
    assert plans[0] == tmp_path / "mine" / "agent.json"


def test_the_port_can_be_listened_on_and_is_not_the_one_that_is_spoken_for() -> None:
    port = free_port()
    with socket.create_server(("", port)):
        others = {free_port(but=port) for _ in range(50)}
    assert port not in others
    assert len(others) > 1, "two runs at once should not meet"
