"""Mistakes that people make who come from Kubernetes, Hugging Face or the shell, and the hint for each."""

from collections.abc import Callable

import pytest

Judge = Callable[..., object]
T = "spec.training"


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (f"{T}.model=bert-base-chinese", "write model: {path: bert-base-chinese}"),
        (f"{T}.data=/data/train.jsonl", "write data: {train: /data/train.jsonl}"),
        (f"{T}.precision=fp16", "write precision: {type: fp16}"),
        (f"{T}.batch=64", "write batch: {globalBatch: 64}"),
        (f"{T}.fp16=true", "write spec.training.precision: {type: fp16}"),
        (f"{T}.output_dir=out", "it is called spec.training.checkpoint.directory here"),
        (f"{T}.model_name_or_path=a", "it is called spec.training.model.path here"),
        (f"{T}.learning_rate=1", "it belongs elsewhere: spec.training.optimizer.learningRate"),
        (f"{T}.model.dropout=10%", "write dropout: 0.1"),
        (f"{T}.data.maxLength=512 tokens", "write maxLength: 512, without a unit"),
        (f"{T}.data.train=[/a, /b]", "give one, or quote it if it is one text that begins with `[`"),
        ("spec.entrypoint=train.py", "write entrypoint: {script: train.py}"),
        ("spec.entrypoint={script: a.py, args: --lr 1e-3 --name x}", 'write args: [--lr, "1e-3", --name, x]'),
        ("spec.containers=[]", "a pod's own fields stand in spec.podTemplate.spec"),
        ("spec.hostNetwork=true", "a pod's own fields stand in spec.podTemplate.spec"),
        ("spec.volumes=[]", "it is called spec.storage here"),
        ("spec.env=[{name: A, value: b}]", "write env: {A: VALUE, ...}, without `name` and `value`"),
        ("spec.env=[A=b]", "remove the `- ` in front of its fields"),
        ("spec.env=A", "write `name: value` lines below it"),
        ("spec.storage[0].persistentVolumeClaim={claimName: a}", "write persistentVolumeClaim: a"),
        ("spec.topology.nprocPerNode=gpu", "leave the field out for its default"),
        ("spec.topology.nprocPerNode=auto", "leave the field out for its default"),
        ("spec.resources.cpu=8 cores", "write 8"),
        ("spec.resources.memory=64 GB", "write 64Gi"),
        ("spec.failurePolicy.gracePeriod=2min", "write 2m"),
        ("spec.failurePolicy.gracePeriod=1 hour", "write 1h"),
        ("spec.failurePolicy.ttlAfterFinished=1d", "write 24h"),
        ("spec.failurePolicy.activeDeadline=none", "leave the field out, or write null"),
        ("metadata.name=My_Job", "write for example my-job"),
        ("name=a", "it belongs elsewhere: metadata.name"),
        ("image=a", "it belongs elsewhere: spec.image"),
        ("training={}", "it belongs elsewhere: spec.training"),
    ],
)
def test_hint_says_what_to_write(judge: Judge, given: str, hint: str) -> None:
    verdict = judge(given)
    assert hint in verdict.hints
    assert len(verdict.errors) == 1 or "spec.entrypoint" in given


def test_command_line_is_taken_apart_when_it_stands_in_place_of_a_script(judge: Judge) -> None:
    verdict = judge("spec.training=null", "spec.entrypoint={script: python3 train.py --lr 3, code: .}")
    assert 'write script: train.py and args: [--lr, "3"]; torchrun starts it' in verdict.hints
