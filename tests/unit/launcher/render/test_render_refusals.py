"""What cannot work is refused with the place, the rule and the fix: rows of `field-notes/launchers.md` section 3."""

import pytest
from tests.unit.launcher.render.conftest import BASE, GPU, Refuse

POD = "spec.podTemplate="
CONTAINER = POD + "{{spec: {{containers: [{{name: pytorch, {}}}]}}}}"


def in_file(addition: str) -> str:
    """Return the valid job with lines added to its spec, the first of them at line 15."""
    return BASE + addition


@pytest.mark.parametrize(
    ("row", "addition", "place", "rule", "fix"),
    [
        ("32", "  podTemplate:\n    spec:\n      hostNetwork: \"true\"\n", "17:7",
         "spec.podTemplate.spec.hostNetwork is 'true', but must be true or false", "write it without quotes"),
        ("36", "  podTemplate:\n    spec:\n      runPolicy: {cleanPodPolicy: All}\n", "17:7",
         "spec.podTemplate.spec.runPolicy is no field that Kubernetes 1.37 knows here", None),
        ("34", "  podTemplate:\n    spec:\n      restartPolicy: OnFailure\n", "17:7",
         "spec.podTemplate.spec.restartPolicy is the backend's own business", "remove it here"),
        ("11", "  backend: PyTorchJob\n  env: {PYTHONUNBUFFERED: \"0\"}\n", "16:9",
         "spec.env.PYTHONUNBUFFERED is set by the training operator itself, to 1, after ours", "remove it"),
        ("11", "  env: {WORLD_SIZE: \"4\"}\n", "15:9",
         "spec.env.WORLD_SIZE is set by torchrun itself, differently in each process", "spec.topology"),
        ("26", "  env: {NCCL_SOCKET_IFNAME: \"^docker0\"}\n", "15:9", "spec.env.NCCL_SOCKET_IFNAME", "lo"),
        ("61", "  resources: {memory: 64GB}\n", "15:15", "spec.resources.memory is '64GB'", "write 64Gi"),
        ("61", "  resources: {memory: 6GiB}\n", "15:15", "spec.resources.memory is '6GiB'", "write 6Gi"),
        ("61", "  resources: {memory: 100K}\n", "15:15", "spec.resources.memory is '100K'", "write 100Ki"),
        ("64", "  resources: {gpu: 2, gpuResource: nvidia.com/mig-1g.10gb}\n", "15:23",
         "NCCL does not work between parts of GPUs", "take whole GPUs"),
        ("4.18", "  resources: {gpu: 2, gpuResource: nvidia.com/gpu.shared}\n", "15:23",
         "NCCL does not work between parts of GPUs", "take whole GPUs"),
        ("2.10", "  resources: {gpu: 2, gpuResource: amd.com/gpu, gpuProduct: MI300X}\n", "15:49",
         "spec.resources.gpuProduct is the label nvidia.com/gpu.product", "spec.scheduling.nodeSelector"),
        ("2.11", "  resources: {gpu: 2, deviceClass: gpu.nvidia.com, gpuResource: amd.com/gpu}\n", "15:23",
         "spec.resources.deviceClass and spec.resources.gpuResource are both given", "keep `deviceClass`"),
    ],
)  # fmt: skip
def test_mistake_is_refused_at_its_place(
    refused: Refuse, row: str, addition: str, place: str, rule: str, fix: str | None
) -> None:
    said = refused(text=in_file(addition))
    first = next(line for line in said.splitlines() if line.startswith(f"job.yaml:{place}: "))
    assert rule in first
    assert fix is None or any(fix in line for line in said.splitlines() if line.startswith("  hint: ")), row


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("1-reviews", "must be lower-case letters, digits and `-`, with a letter first"),  # row 2
        ("team.reviews", "hint: write for example team-reviews"),  # row 2
        ("n" * 47, "47 characters, but may have 46 at most"),  # rows 1, 4, trainer v2
    ],
)
def test_row_1_2_4_name_is_refused_when_names_made_of_it_would_be_invalid(
    refused: Refuse, name: str, rule: str
) -> None:
    assert rule in refused(f"metadata.name={name}")


def test_row_5_label_of_kueue_is_a_valid_key_but_has_its_own_field(refused: Refuse) -> None:
    said = refused("metadata.labels={kueue.x-k8s.io/queue-name: team-a}")
    assert "is set from spec.scheduling.queue" in said


def test_row_29_devices_by_path_and_by_plugin_are_refused_together(refused: Refuse) -> None:
    said = refused(
        *GPU,
        "spec.fabric={profile: ib-shared, parameters: {resource: rdma/hca}}",
        "spec.storage=[{name: verbs, mountPath: /verbs, hostPath: /dev/infiniband}]",
    )
    assert "/dev/infiniband" in said


def test_row_37_replacing_without_limit_is_refused_without_a_cap(refused: Refuse) -> None:
    said = refused("spec.backend=PyTorchJob", "spec.storage=[{name: data, mountPath: /data, emptyDir: {}}]")
    assert "spec.backend is PyTorchJob, which replaces pods without limit" in said
    assert "hint: set activeDeadline" in said


@pytest.mark.parametrize(
    ("part", "rule", "fix"),
    [
        ("image: other", "spec.podTemplate.spec.containers[0].image is set by spec.image", "remove it here"),
        ("command: [python]", "command is the agent's own", "spec.entrypoint"),
        ("resources: {limits: {memory: 1Gi}}", "limits.memory is set by spec.resources.memory",
         "set spec.resources.memory instead"),
        ("resources: {limits: {cpu: 1}}", "limits.cpu is set by spec.resources.guaranteed", "instead"),
        ("env: [{name: RANK, value: '1'}]", "is RANK, which is set by torchrun itself", "spec.topology"),
        ("volumeMounts: [{name: data, mountPath: /dev/shm}]", "is '/dev/shm', which is the launcher's own",
         "set spec.resources.sharedMemory"),
        ("volumeMounts: [{name: data, mountPath: /data}]", "is '/data', where spec.storage[0] is mounted",
         "keep one of them"),
        ("volumeMounts: [{name: nowhere, mountPath: /x}]", "is 'nowhere', but there is no such volume",
         "spec.storage makes a volume"),
        ("imagePulPolicy: Always", "imagePulPolicy is no field that Kubernetes 1.37 knows here",
         "did you mean `imagePullPolicy`?"),
        ("securityContext: {privileged: true}", "allowPrivilegeEscalation is false, but privileged is true",
         "set allowPrivilegeEscalation: true beside it"),
        ("securityContext: {runAsUser: 0}", "is 0, which is root, but runAsNonRoot is true",
         "set runAsNonRoot: false beside it"),
        ("ports: [{containerPort: 70000}]", "is 70000, but must be 1 to 65535", None),
        ("livenessProbe: {periodSeconds: 5}", "livenessProbe must have one of exec", None),
    ],
)  # fmt: skip
def test_pod_template_is_refused_where_it_cannot_be(
    refused: Refuse, part: str, rule: str, fix: str | None
) -> None:
    said = refused(CONTAINER.format(part))
    assert rule in said
    assert fix is None or fix in said


@pytest.mark.parametrize(
    ("part", "rule"),
    [
        ("{spec: {dnsPolicy: Cluster}}", "spec.podTemplate.spec.dnsPolicy is 'Cluster', but must be one of"),
        ("{spec: {volumes: [{name: ddpk8s-shm, emptyDir: {}}]}}", "names with ddpk8s- are the launcher's"),
        ("{spec: {volumes: [{name: data, emptyDir: {}}]}}", "is 'data', the volume of spec.storage[0]"),
        ("{spec: {volumes: [{name: more}]}}", "spec.podTemplate.spec.volumes[0] has no source"),
        (
            "{spec: {tolerations: [{operator: Exists, value: x}]}}",
            "tolerations[0].value is set, but operator",
        ),
        ("{metadata: {labels: {ddpk8s.dev/job: other}}}", "is the launcher's own or Kubernetes'"),
        ("{metadata: {labels: {team: 'a b'}}}", "spec.podTemplate.metadata.labels.team is 'a b'"),
        ("{spec: {containers: [{name: side}]}}", "containers[0] is container 'side', which has no image"),
        ("{spec: {nodeSelector: {pool: 5}}}", "nodeSelector.pool is 5, but must be text"),
        (
            "{spec: {hostAliases: [{ip: x, hostnames: [a]}]}}",
            "hostAliases[0].ip is 'x', but must be an IP address",
        ),
        ("{spec: {runtimeClassName: A B}}", "runtimeClassName is 'A B', but must be lower-case letters"),
        ("{spec: {securityContext: {runAsUser: -1}}}", "runAsUser is -1, but must be 0 to 2147483647"),
        (
            "{spec: {securityContext: {seccompProfile: {type: x}}}}",
            "seccompProfile.type is 'x', but must be one of",
        ),
        (
            "{spec: {shareProcessNamespace: true, hostPID: true}}",
            "shareProcessNamespace is true, as is hostPID",
        ),
        (
            "{spec: {topologySpreadConstraints: [{topologyKey: a, maxSkew: 0, whenUnsatisfiable: ScheduleAnyway}]}}",
            "maxSkew is 0, but must be 1 to",
        ),
        (
            "{spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
            "[{matchExpressions: [{key: a, operator: In}]}]}}}}}",
            "has no values, which operator In needs",
        ),
        (
            "{spec: {volumes: [{name: v, secret: {secretName: s, items: [{key: a, path: ../b}]}}]}}",
            "items[0].path is '../b', but must be a path inside the volume",
        ),
        (
            "{spec: {containers: [{name: s, image: x, envFrom: [{}]}]}}",
            "must have one of configMapRef, secretRef",
        ),
        (
            "{spec: {containers: [{name: s, image: x, lifecycle: {preStop: {}}}]}}",
            "preStop must have one of exec",
        ),
        (
            "{spec: {containers: [{name: s, image: x, resources: {limits: {gpu: 1}}}]}}",
            "limits.gpu is no resource that Kubernetes knows",
        ),
        ("{spec: {containers: [null]}}", "containers[0] has no name"),
        (
            "{spec: {containers: [{name: s, image: x, env: [null]}]}}",
            "env[0] is null, which says nothing here",
        ),
        ("{spec: {hostNetwork: 1}}", "spec.podTemplate.spec.hostNetwork is 1, but must be true or false"),
    ],
)
def test_pod_is_refused_where_it_cannot_be(refused: Refuse, part: str, rule: str) -> None:
    assert rule in refused(POD + part)


def test_all_mistakes_of_the_pod_template_are_told_at_once(refused: Refuse) -> None:
    said = refused(
        text=in_file(
            "  podTemplate:\n    spec:\n      dnsPolicyy: x\n      hostNetwork: 1\n      nodeName: 3\n"
        )
    )
    assert [line.partition(": ")[0] for line in said.splitlines() if line.startswith("job.yaml")] == [
        "job.yaml:17:7",
        "job.yaml:18:7",
        "job.yaml:19:7",
    ]


def test_run_id_is_refused_when_it_is_no_label(refused: Refuse, rendered: object) -> None:
    with pytest.raises(Exception, match="the run id is 'No Id', but must be lower-case letters"):
        rendered(run_id="No Id")  # type: ignore[operator]


@pytest.mark.parametrize(
    ("sets", "rule"),
    [
        (
            "spec.env={X: " + "x" * 200_000 + "}",
            "spec.env.X has 195.3Ki, but Linux starts no process with more",
        ),
        (
            "metadata.annotations={a: " + "x" * 300_000 + "}",
            "metadata.annotations have 293.0Ki together, but 256Ki",
        ),
        (
            "spec.podTemplate={metadata: {annotations: {a: " + "x" * 300_000 + "}}}",
            "annotations have 293.0Ki together",
        ),
        (
            "spec.training.model={config: {model_type: bert, note: "
            + "x" * 1_050_000
            + "}, buildTokenizer: {}}",
            "makes a ConfigMap of",
        ),
    ],
)
def test_what_is_too_long_for_its_place_is_refused(refused: Refuse, sets: str, rule: str) -> None:
    assert rule in refused(sets)
