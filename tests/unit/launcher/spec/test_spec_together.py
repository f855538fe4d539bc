"""All mistakes at once, in the order of the file, and only those that are worth telling."""

from collections.abc import Callable

Report = Callable[..., str]

MANY = """\
apiVersion: ddpk8s.dev/v1alpha1
kind: TrainingJob
metadata: {name: reviews}
spec:
  image: registry.example/trainer:1.0
  nnodes: 2
  topology: {nnodes: 2, nprocPerNode: 8}
  resources: {gpu: 4, memory: 512}
  env:
    FOO: no
    RANK: "0"
  failurePolicy: {gracePeriod: 5s, startDeadline: 90, max_restarts: 3}
  storage:
    - {name: data, mountPath: data, persistentVolumeClaim: {claimName: x}}
    - {name: data, mountPath: /d}
  training:
    model: {config: {hidden_size: 100, num_attention_heads: 3, model_type: bert}}
    data: {train: /d/x, maxLength: 1e5}
    precision: {type: bfloat16}
    schedule: {warmupSteps: 3, warmupRatio: 0.1}
"""

PRINTED = """\
job.yaml:6:3: spec.nnodes is not a known field
  hint: it belongs elsewhere: spec.topology.nnodes
job.yaml:7:25: spec.topology.nprocPerNode is 8 but spec.resources.gpu is 4
  hint: each process needs a GPU: set both to the same number, or leave nprocPerNode out to get 4
job.yaml:8:23: spec.resources.memory is 512, less than a mebibyte
  hint: without a unit it means bytes, and `m` thousandths; did you mean 512Gi or 512Mi?
job.yaml:10:5: spec.env.FOO is no without quotes, which is text to some readers of YAML and false to others
  hint: write "no" in quotes for the text, or false for the boolean
job.yaml:11:5: spec.env.RANK is set by torchrun itself, differently in each process
  hint: remove it; spec.topology is where nodes, processes and the port are set
job.yaml:12:19: spec.failurePolicy.gracePeriod is 5s, but the last 5s are the launcher's own: no time is left to save
  hint: set it to the time a checkpoint takes and 5s more, 30s at least for all but tiny models
job.yaml:12:36: spec.failurePolicy.startDeadline is 90, but must be a duration: numbers with units (ms, s, m, h), \
as in 90s or 1h30m
  hint: write 90s if you mean seconds
job.yaml:12:55: spec.failurePolicy.max_restarts is not a known field
  hint: did you mean `maxRestarts`? Keys are camelCase
job.yaml:14:20: spec.storage[0].mountPath is 'data', but must be an absolute path, as in /data
job.yaml:14:37: spec.storage[0].persistentVolumeClaim is a mapping, but must be text
  hint: write persistentVolumeClaim: x
job.yaml:15:7: spec.storage[1] has no source, so there is nothing to mount
  hint: add one of persistentVolumeClaim, emptyDir, hostPath, nfs, configMap, secret, ephemeral, csi; \
scratch space is `emptyDir: {}`
job.yaml:15:8: spec.storage[1].name is 'data', as is spec.storage[0].name
  hint: change one of them
job.yaml:17:5: spec.training.model has a `config` but no tokenizer
  hint: add `buildTokenizer: {}` or `tokenizer: DIRECTORY`
job.yaml:17:22: spec.training.model.config.hidden_size is 100, no multiple of \
spec.training.model.config.num_attention_heads, which is 3
  hint: write for example hidden_size: 102
job.yaml:18:25: spec.training.data.maxLength is 1e5, but must be a whole number
  hint: write maxLength: 100000
job.yaml:19:17: spec.training.precision.type is 'bfloat16', but must be one of fp32, bf16, fp16
  hint: did you mean bf16?
job.yaml:20:16: spec.training.schedule.warmupSteps and spec.training.schedule.warmupRatio are both given, \
but exclude each other
  hint: remove one of them"""


def test_every_mistake_is_told_at_once(report: Report) -> None:
    assert report(MANY) == PRINTED


def test_checks_run_when_required_fields_are_missing(report: Report, base: str) -> None:
    text = base.replace("train: /data/train.jsonl, ", "").replace(
        "  image: registry.example/trainer:1.0\n", ""
    )
    printed = report(text + "    batch: {globalBatch: 2}\n", "spec.topology.nprocPerNode=4")
    assert "spec.image is missing" in printed
    assert "spec.training.data.train is missing" in printed
    assert "spec.training.batch.globalBatch is 2 but the job has 4 processes" in printed


def test_no_check_speaks_of_a_field_that_is_wrong_by_itself(report: Report, base: str) -> None:
    printed = report(base + "    batch: {globalBatch: four}\n", "spec.topology.nprocPerNode=8")
    assert printed == "job.yaml:13:13: spec.training.batch.globalBatch is 'four', but must be a whole number"


def test_no_check_speaks_of_the_default_of_a_misspelt_field(report: Report, base: str) -> None:
    text = base.replace("train: /data", "maxlength: 64, train: /data") + "    batch: {tokensPerDevice: 64}\n"
    printed = report(text)
    assert printed.count("job.yaml:") == 1
    assert "did you mean `maxLength`?" in printed


def test_warnings_wait_until_there_is_no_error(report: Report, base: str) -> None:
    text = base.replace("/data/train.jsonl", "/elsewhere/train.jsonl")
    assert report(text) == (
        "job.yaml:12:12: warning: spec.training.data.train is '/elsewhere/train.jsonl', "
        "which lies in no volume of spec.storage\n  hint: mount a volume in spec.storage, unless the image holds it"
    )
    assert "warning" not in report(text + "    epochs: 0\n")
