"""What each node's agent gets of this machine: its rank, its share of cores and GPUs. Pure."""

from collections.abc import Mapping

from ddpk8s.local.machine import Machine, gpu_share
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.values import amount

_THREADS = "OMP_NUM_THREADS"
_DEVICES = "CUDA_VISIBLE_DEVICES"


def agent_environment(
    job: TrainingJob, node: int, machine: Machine, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of a node's agent.

    Args:
        job: The job as it runs here.
        node: Rank of the node.
        machine: What all nodes share.
        environment: Ours; what the user set in it stays.
    """
    spec = job.spec
    # Said even if it is 0: an Indexed Job, inside of which we may be, has an index of its own for us.
    result = dict(environment) | {"DDPK8S_NODE_RANK": str(node)}
    if spec.topology.nnodes == 1:
        return result
    if not environment.get(_THREADS):  # the job's own comes later, and wins
        # The agent would divide all cores by its own processes, as if its node were alone here.
        result[_THREADS] = str(max(1, machine.cores // spec.world_size))
    if machine.gpus:
        result[_DEVICES] = gpu_share(node, spec.resources.gpu, environment.get(_DEVICES))
    return result


def size(job: TrainingJob) -> str:
    """Return how much is started, for a message: ``2 processes``, ``2 nodes x 1 process``."""
    processes = amount(job.spec.nproc_per_node, "processes")
    nodes = job.spec.topology.nnodes
    return processes if nodes == 1 else f"{amount(nodes, 'nodes')} x {processes}"
