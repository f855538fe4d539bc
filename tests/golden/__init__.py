"""Rendered examples as files that people review: `python -m tests.golden` writes them again, on purpose only."""

import re
from collections.abc import Iterator
from pathlib import Path

from ddpk8s.render.reading import read_source
from ddpk8s.render.summary import summary
from ddpk8s.render.yaml_text import to_yaml

DIRECTORY = Path(__file__).parent
EXAMPLES = DIRECTORY.parents[1] / "k8s" / "examples"
BACKENDS = ("IndexedJob", "PyTorchJob")
_NO_LEDGER = {"own-script", "pod-template"}
"""Without a shared checkpoint volume only a deadline ends a PyTorchJob that cannot go on."""
_EXAMPLE = "h100-2x8"
_FOUR = ["spec.resources={gpu: 4, cpu: '96', memory: 800Gi}", "spec.topology.nprocPerNode=4"]
_FABRICS: dict[str, list[str]] = {
    "ack-lingjun": [],
    "aks-nd": [],
    "coreweave-ib": [],
    "coreweave-roce": _FOUR,
    "custom": [],
    "gke-a4x": _FOUR,
    "gke-rdma": [],
    "gke-tcpx": [],
    "gke-tcpxo": [],
    "ib-shared": ["spec.fabric.parameters={resource: rdma/hca_shared_devices_a}"],
    "ib-sriov": ["spec.fabric.parameters={resource: nvidia.com/ib, devices: '8'}"],
    "mnnvl": _FOUR,
    "nvlink": ["spec.topology.nnodes=1"],
    "oci-hostnet": [],
    "oci-vf": ["spec.fabric.parameters={devices: '16', networks: oci-vfs}"],
    "roce": ["spec.fabric.parameters={resource: nvidia.com/vf, networks: roce-vfs}"],
    "tcp": [],
}
"""Profiles beyond those that the examples name, and what makes an example fit."""


def cases() -> Iterator[tuple[str, Path, list[str]]]:
    """Yield name, job file and overrides of each golden file."""
    for file in sorted(EXAMPLES.glob("*.yaml")):
        for backend in BACKENDS:
            sets = [f"spec.backend={backend}"]
            if backend == "PyTorchJob" and file.stem in _NO_LEDGER:
                sets.append("spec.failurePolicy.activeDeadline=2h")
            yield f"{file.stem}.{backend}", file, sets
    for profile, sets in _FABRICS.items():
        file = EXAMPLES / f"{_EXAMPLE}.yaml"
        yield f"{_EXAMPLE}.{profile}", file, [f"spec.fabric.profile={profile}", *sets]


def render_case(file: Path, sets: list[str]) -> str:
    """Return the objects of a case and its summary; archives, and the agent's hash, are left out."""
    rendering = read_source(file, sets).render("golden-run")
    objects = [
        {**each, "binaryData": dict.fromkeys(each["binaryData"], "(archive)")}
        if "binaryData" in each
        else each
        for each in rendering.objects
    ]
    text = re.sub(r"-agent-[0-9a-f]{10}", "-agent-0000000000", to_yaml(objects))
    said = "".join(f"# {line}\n" for line in summary(rendering))
    return said + text
