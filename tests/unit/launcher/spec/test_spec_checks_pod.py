"""What a pod asks for: processes and GPUs, memory, environment, pod template, time limits."""

from collections.abc import Callable

import pytest

Judge = Callable[..., object]
R, F = "spec.resources", "spec.failurePolicy"
SECRET = "looks like a secret, and secrets must not stand in the job file"


@pytest.mark.parametrize(
    ("sets", "error"),
    [
        ([f"{R}.gpu=4", "spec.topology.nprocPerNode=8"], "spec.topology.nprocPerNode is 8 but spec.resources.gpu is 4"),
        ([f"{R}.gpuProduct=NVIDIA-A100"], f"{R}.gpuProduct is set but spec.resources.gpu is 0"),
        ([f"{R}.gpuResource=nvidia.com/mig-1g.10gb"], f"{R}.gpuResource is set but spec.resources.gpu is 0"),
        ([f"{R}={{gpu: 2, gpuResource: nvidia.com/mig-1g.10gb}}"],
            f"{R}.gpuResource is nvidia.com/mig-1g.10gb but the job has 2 processes, "
            "and NCCL does not work between parts of GPUs"),
        ([f"{R}.guaranteed=true"], f"{R}.guaranteed is true but {R}.cpu and {R}.memory is not set"),
        ([f"{R}.cpu=0"], f"{R}.cpu is 0, which is no sensible number of cores"),
        ([f"{R}.cpu=64Gi"], f"{R}.cpu is 64Gi, which is no sensible number of cores"),
        ([f"{R}.memory=512"], f"{R}.memory is 512, less than a mebibyte"),
        ([f"{R}.memory=512m"], f"{R}.memory is 512m, less than a mebibyte"),
        ([f"{R}.sharedMemory=8"], f"{R}.sharedMemory is 8, less than a mebibyte"),
        ([f"{R}={{memory: 4Gi, sharedMemory: 4Gi}}"],
            f"{R}.sharedMemory is 4Gi, but {R}.memory, in which that counts, is 4Gi"),
        ([f"{R}={{memory: 4Gi, sharedMemory: 1Gi}}",
            "spec.storage[2]={name: ram, mountPath: /ram, emptyDir: {medium: Memory, sizeLimit: 3Gi}}"],
            f"{R}.sharedMemory is 1Gi and spec.storage[2].emptyDir.sizeLimit is 3Gi, "
            f"but {R}.memory, in which that counts, is 4Gi"),
        (['spec.env.WORLD_SIZE="2"'], "spec.env.WORLD_SIZE is set by torchrun itself, differently in each process"),
        (["spec.env.PET_NNODES=a"], "spec.env.PET_NNODES is set by torchrun itself, differently in each process"),
        (["spec.env.MASTER_ADDR=a"], "spec.env.MASTER_ADDR is set by torchrun itself, differently in each process"),
        (["spec.env.DDPK8S_JOB=a"], "spec.env.DDPK8S_JOB is set by the launcher itself"),
        (["spec.env.NVIDIA_VISIBLE_DEVICES=all"],
            "spec.env.NVIDIA_VISIBLE_DEVICES would give pods GPUs that the scheduler gave to others"),
        (["spec.env.WANDB_API_KEY=abc"], f"spec.env.WANDB_API_KEY {SECRET}"),
        (["spec.env.HF_TOKEN=abc"], f"spec.env.HF_TOKEN {SECRET}"),
        (["spec.env.NOTE=ghp_" + "a1" * 12], f"spec.env.NOTE {SECRET}"),
        (["spec.secrets=[{name: a, key: b, env: RANK}]"],
            "spec.secrets[0].env is set by torchrun itself, differently in each process"),
        (["spec.secrets=[{name: a, key: b, env: A}]", "spec.env.A=b"],
            "spec.secrets[0].env is A, which spec.env sets too"),
        (["spec.secrets=[{name: a, key: b, env: A}, {name: c, key: d, env: A}]"],
            "spec.secrets[1].env is A, as is spec.secrets[0].env"),
        (['metadata.labels["ddpk8s.dev/run-id"]=a'],
            'metadata.labels["ddpk8s.dev/run-id"] is set by the launcher or by Kubernetes'),
        (['metadata.labels["kueue.x-k8s.io/queue-name"]=a'],
            'metadata.labels["kueue.x-k8s.io/queue-name"] is set from spec.scheduling.queue'),
        (["spec.podTemplate.spce={}"], "spec.podTemplate.spce is not a known field: a pod has `metadata` and `spec`"),
        (["spec.podTemplate.spec=[]"], "spec.podTemplate.spec must be a mapping"),
        (["spec.podTemplate.spec.terminationGracePeriodSeconds=5"],
            f"spec.podTemplate.spec.terminationGracePeriodSeconds is set by {F}.gracePeriod"),
        (["spec.podTemplate.spec.containers={}"], "spec.podTemplate.spec.containers must be a list"),
        (["spec.podTemplate.spec.containers=[{image: a}]"],
            "spec.podTemplate.spec.containers[0] has no name, by which it is merged"),
        (["spec.podTemplate.spec.containers=[{name: pytorch, env: [{name: HF_TOKEN, value: abc}]}]"],
            f"spec.podTemplate.spec.containers[0].env[0] {SECRET}"),
        ([f"{F}.gracePeriod=5s"],
            f"{F}.gracePeriod is 5s, but the last 5s are the launcher's own: no time is left to save"),
        ([f"{F}.startDeadline=0s"], f"{F}.startDeadline is 0s, but must be at least 1s"),
        ([f"{F}.hangTimeout=500ms"], f"{F}.hangTimeout is 500ms, but must be at least 1s"),
        ([f"{F}.activeDeadline=2m"],
            f"{F}.activeDeadline is 2m, not more than {F}.gracePeriod, which is 2m"),
        ([f'{F}.progressRegex="(?P<step>1)"'],
            f"{F}.progressRegex is set but the bundled trainer reports its progress itself"),
    ],
)  # fmt: skip
def test_pod_is_refused_when_it_cannot_work(judge: Judge, sets: list[str], error: str) -> None:
    assert judge(*sets).errors == [error]


@pytest.mark.parametrize(
    ("sets", "warning"),
    [
        ([f"{R}.gpu=8", "spec.topology.nprocPerNode=6"],
            "spec.topology.nprocPerNode is 6 but spec.resources.gpu is 8, so 2 of them may stay idle"),
        ([f"{R}.cpu=2", "spec.topology.nprocPerNode=4"],
            f"{R}.cpu is 2 for 4 processes on each node, less than a core each"),
        (['spec.env.CUDA_VISIBLE_DEVICES="0"'],
            "spec.env.CUDA_VISIBLE_DEVICES is set, so processes may not see the GPUs that Kubernetes gave the pod"),
        ([f"{F}.gracePeriod=10s"], f"{F}.gracePeriod is 10s, which leaves 5s to save a checkpoint"),
    ],
)  # fmt: skip
def test_pod_is_warned_of_when_it_may_not_be_what_is_meant(
    judge: Judge, sets: list[str], warning: str
) -> None:
    verdict = judge(*sets)
    assert verdict.errors == []
    assert verdict.warnings == [warning]


@pytest.mark.parametrize(
    "sets",
    [
        [
            'spec.env={PAD_TOKEN: "[PAD]", TOKENIZERS_PARALLELISM: "false", HF_TOKEN_PATH: /secrets/token, API_KEY: ""}'
        ],
        ["spec.env.GOOGLE_APPLICATION_CREDENTIALS=/secrets/key.json"],
        [f"{R}={{gpu: 8, cpu: 64, memory: 512Gi, sharedMemory: 64Gi, gpuProduct: NVIDIA-H100-80GB-HBM3}}"],
        [f"{R}={{gpu: 1, gpuResource: nvidia.com/mig-1g.10gb}}"],
        [f"{R}={{cpu: 1.5, memory: 1Gi}}"],
        [f"{R}={{guaranteed: true, cpu: 4, memory: 8Gi}}"],
        ["spec.podTemplate.metadata={annotations: {a: b}}", "spec.podTemplate.spec.containers=[{name: a}]"],
        [
            f"{F}={{maxRestarts: 0, ttlAfterFinished: 0s, activeDeadline: 72h, hangTimeout: 20m, gracePeriod: 15s}}"
        ],
    ],
)
def test_nothing_is_said_when_the_pod_can_work(judge: Judge, sets: list[str]) -> None:
    verdict = judge(*sets)
    assert (verdict.errors, verdict.warnings) == ([], [])


def test_shared_memory_defaults_to_the_smaller_of_8_gib_and_a_quarter_of_memory(judge: Judge) -> None:
    gib = 2**30
    for memory, expected in ((None, 8), ("16Gi", 4), ("512Gi", 8)):
        verdict = judge(*([f"{R}.memory={memory}"] if memory else []))
        assert verdict.job.spec.resources.shared_memory_bytes == expected * gib
    assert judge(f"{R}.sharedMemory=3Gi").job.spec.resources.shared_memory_bytes == 3 * gib


def test_processes_default_to_gpus_and_then_to_one(judge: Judge) -> None:
    assert judge().job.spec.world_size == 1
    assert judge(f"{R}.gpu=8", "spec.topology.nnodes=2").job.spec.world_size == 16
    assert judge("spec.topology={nnodes: 2, nprocPerNode: 3}").job.spec.world_size == 6
