"""Every line that a profile adds is listed with its source; the shell lines do what they say."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ddpk8s.fabric import additions, explain, load_profiles
from ddpk8s.spec.fabric import PROFILES
from ddpk8s.spec.job import TrainingJob

WithProfile = Callable[..., TrainingJob]


@pytest.mark.parametrize("name", PROFILES)
def test_every_addition_is_explained(with_profile: WithProfile, name: str) -> None:
    profile, job = load_profiles()[name], with_profile(name)
    found, rows = additions(profile, job), explain(profile, job)
    expected = [(f"env {key}", value.value) for key, value in found.env.items()]
    expected += [(f"resource {key}", value) for key, value in found.resources.items()]
    expected += [(f"annotation {key}", value) for key, value in found.annotations.items()]
    expected += [(f"node label {key}", value) for key, value in found.node_selector.items()]
    expected += [("capability", value) for value in found.capabilities]
    expected += [("pods near by", value) for value in found.near]
    expected += [("prologue", line) for line in found.prologue if "LD_LIBRARY_PATH" not in line]
    for what, items in (
        ("volume", found.volumes),
        ("mount", found.mounts),
        ("sidecar", found.sidecars),
        ("toleration", found.tolerations),
        ("claim", found.claims),
        ("object", found.objects),
    ):
        expected += [(what, json.dumps(item)) for item in items]
    expected += [("runAsUser", "0")] * found.run_as_root + [("privileged", "true")] * found.privileged
    expected += [("hostNetwork", "true")] * found.host_network
    assert sorted(row[:2] for row in rows if row[0] != "library path") == sorted(expected)
    assert all(source.strip() for _, _, source in rows)


def test_source_says_address_and_reason(with_profile: WithProfile) -> None:
    rows = {
        what: (value, source) for what, value, source in explain(load_profiles()["tcp"], with_profile("tcp"))
    }
    value, source = rows["env NCCL_IB_DISABLE"]
    assert value == "1"
    assert source.startswith("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html")
    assert source.endswith(": a node may show InfiniBand devices that the pod cannot use")


def test_variable_of_the_job_is_explained_as_its_own(with_profile: WithProfile) -> None:
    job = with_profile("tcp", "spec.env.NCCL_DEBUG=INFO")
    rows = explain(load_profiles()["tcp"], job)
    assert ("env NCCL_DEBUG", "INFO", "spec.env.NCCL_DEBUG, in place of the profile's WARN") in rows


def run_prologue(lines: list[str], tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "prologue.sh"
    script.write_text("\n".join([*lines, 'exec "$@"', ""]), encoding="utf-8")
    command = ["bash", str(script), "env"]
    base = {"PATH": os.environ["PATH"], **env}
    return subprocess.run(command, env=base, capture_output=True, text=True, check=False)


def test_library_path_keeps_what_the_image_has(with_profile: WithProfile, tmp_path: Path) -> None:
    lines = list(additions(load_profiles()["aws-efa"], with_profile("aws-efa")).prologue)
    ours = "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu:/opt/amazon/efa/lib"
    done = run_prologue(lines, tmp_path, LD_LIBRARY_PATH="/image/lib")
    assert f"LD_LIBRARY_PATH={ours}:/image/lib" in done.stdout.splitlines()
    assert f"LD_LIBRARY_PATH={ours}" in run_prologue(lines, tmp_path).stdout.splitlines()


@pytest.mark.parametrize("name", ["gke-rdma", "gke-tcpxo", "gke-a4x"])
def test_pod_stops_as_a_mistake_when_the_plugin_is_not_on_the_node(
    with_profile: WithProfile, tmp_path: Path, name: str
) -> None:
    done = run_prologue(list(additions(load_profiles()[name], with_profile(name)).prologue), tmp_path)
    assert done.returncode == 78
    assert "is missing: has the node Google's nccl-" in done.stderr


def test_plugin_script_is_read_and_the_name_in_the_image_forgotten(
    with_profile: WithProfile, tmp_path: Path
) -> None:
    plugin = tmp_path / "set_nccl_env.sh"
    plugin.write_text("export NCCL_FROM_PLUGIN=1\n", encoding="utf-8")
    lines = additions(load_profiles()["gke-rdma"], with_profile("gke-rdma")).prologue
    here = [line.replace("/usr/local/gib/scripts/set_nccl_env.sh", str(plugin)) for line in lines]
    done = run_prologue(here, tmp_path, NCCL_NET_PLUGIN="spcx")
    assert done.returncode == 0
    assert "NCCL_FROM_PLUGIN=1" in done.stdout.splitlines()
    assert "NCCL_NET_PLUGIN" not in done.stdout
