"""What the pods of a job are: their rights, resources, volumes, and the files they get."""

import json
from typing import Any

import pytest
from tests.unit.launcher.render.conftest import GPU, Render, container, environment, find, pods

BACKENDS = ["spec.backend=IndexedJob", "spec.backend=PyTorchJob"]
RESTRICTED_VOLUMES = {"configMap", "csi", "emptyDir", "ephemeral", "persistentVolumeClaim", "secret", "name"}


def violations(pod: dict[str, Any]) -> list[str]:
    """Return what the Pod Security standard "restricted" forbids in a pod."""
    found = [key for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key)]
    found += [
        f"volume {volume['name']}" for volume in pod["volumes"] if not set(volume) <= RESTRICTED_VOLUMES
    ]
    around = pod["securityContext"]
    if around.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        found.append("seccompProfile")
    for each in (*pod["containers"], *pod.get("initContainers", [])):
        own = each.get("securityContext", {})
        capabilities = own.get("capabilities", {})
        if own.get("privileged") or own.get("allowPrivilegeEscalation") is not False:
            found.append("allowPrivilegeEscalation")
        if "ALL" not in capabilities.get("drop", []) or set(capabilities.get("add", [])) - {
            "NET_BIND_SERVICE"
        }:
            found.append("capabilities")
        if not own.get("runAsNonRoot", around.get("runAsNonRoot")) or own.get("runAsUser") == 0:
            found.append("runAsNonRoot")
        found += [f"hostPort {port}" for port in each.get("ports", []) if "hostPort" in port]
    return found


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("profile", [(), GPU, (*GPU, "spec.fabric.profile=tcp")])
def test_pods_keep_to_the_restricted_standard(
    rendered: Render, backend: str, profile: tuple[str, ...]
) -> None:
    for pod in pods(rendered(backend, *profile)):
        assert violations(pod["spec"]) == []
        assert pod["spec"]["automountServiceAccountToken"] is False


def test_pods_with_memory_registration_say_what_they_need(rendered: Render) -> None:
    rendering = rendered(*GPU, "spec.fabric={profile: ib-shared, parameters: {resource: rdma/hca}}")
    assert {"capabilities", "runAsNonRoot"} <= set(violations(pods(rendering)[0]["spec"]))
    assert rendering.context.extras.pod_security == "privileged"


def test_requests_equal_limits_but_for_the_cpu(rendered: Render) -> None:
    resources = container(rendered(*GPU, "spec.resources.cpu=64"))["resources"]
    assert resources["limits"] == {"memory": "64Gi", "nvidia.com/gpu": "8"}
    assert resources["requests"] == {"cpu": "64", **resources["limits"]}


def test_guaranteed_limits_the_cpu_too(rendered: Render) -> None:
    resources = container(rendered(*GPU, "spec.resources.cpu=64", "spec.resources.guaranteed=true"))[
        "resources"
    ]
    assert resources["limits"] == resources["requests"]


@pytest.mark.parametrize(
    ("sets", "size"), [((), "8Gi"), (GPU, "8Gi"), (("spec.resources.memory=3Gi",), "768Mi"),
                       (("spec.resources.memory=64Gi", "spec.resources.sharedMemory=20Gi"), "20Gi")]
)  # fmt: skip
def test_shared_memory_is_a_memory_volume_with_a_limit(
    rendered: Render, sets: tuple[str, ...], size: str
) -> None:
    rendering = rendered(*sets)
    (shm,) = [volume for volume in pods(rendering)[0]["spec"]["volumes"] if volume["name"] == "ddpk8s-shm"]
    assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": size}
    assert {"name": "ddpk8s-shm", "mountPath": "/dev/shm"} in container(rendering)["volumeMounts"]


def test_size_of_shared_memory_is_checked_only_if_somebody_said_it(rendered: Render) -> None:
    def checked(*sets: str) -> Any:
        plan = next(each["data"]["agent.json"] for each in rendered(*sets).objects if "data" in each)
        return json.loads(plan)["checks"]["sharedMemoryBytes"]

    assert checked() is None
    assert checked("spec.resources.memory=64Gi") == 8 * 1024**3


def test_claims_take_the_place_of_a_device_plugin(rendered: Render) -> None:
    rendering = rendered(*GPU, "spec.resources.deviceClass=gpu.nvidia.com")
    template = find(rendering, "ResourceClaimTemplate")
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"] == {
        "deviceClassName": "gpu.nvidia.com",
        "allocationMode": "ExactCount",
        "count": 8,
    }
    (claim,) = pods(rendering)[0]["spec"]["resourceClaims"]
    assert claim["resourceClaimTemplateName"] == template["metadata"]["name"]
    resources = container(rendering)["resources"]
    assert resources["claims"] == [{"name": claim["name"]}]
    assert "nvidia.com/gpu" not in resources["limits"]


@pytest.mark.parametrize(
    ("volume", "source"),
    [
        ("persistentVolumeClaim: c", {"persistentVolumeClaim": {"claimName": "c", "readOnly": True}}),
        ("emptyDir: {medium: Memory, sizeLimit: 1Gi}", {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}),
        ("hostPath: /mnt/x", {"hostPath": {"path": "/mnt/x", "type": "Directory"}}),
        ("nfs: {server: s, path: /p}", {"nfs": {"server": "s", "path": "/p", "readOnly": True}}),
        ("configMap: m", {"configMap": {"name": "m"}}),
        ("secret: s", {"secret": {"secretName": "s"}}),
        ("ephemeral: {storage: 5Gi}", {"ephemeral": {"volumeClaimTemplate": {"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}}}}),
        ("csi: {driver: d, volumeAttributes: {b: x}, secret: k}",
         {"csi": {"driver": "d", "readOnly": True, "volumeAttributes": {"b": "x"},
                  "nodePublishSecretRef": {"name": "k"}}}),
    ],
)  # fmt: skip
def test_storage_becomes_volume_and_mount(rendered: Render, volume: str, source: dict[str, Any]) -> None:
    rendering = rendered(f"spec.storage[0]={{name: data, mountPath: /data, readOnly: true, {volume}}}")
    assert {"name": "data", **source} in pods(rendering)[0]["spec"]["volumes"]
    assert {"name": "data", "mountPath": "/data", "readOnly": True} in container(rendering)["volumeMounts"]


def test_secrets_are_references(rendered: Render) -> None:
    rendering = rendered(
        "spec.secrets=[{name: wandb, key: api-key, env: WANDB_API_KEY}]", "spec.imagePullSecrets=[r]"
    )
    assert environment(rendering)["WANDB_API_KEY"] == {"secretKeyRef": {"name": "wandb", "key": "api-key"}}
    assert pods(rendering)[0]["spec"]["imagePullSecrets"] == [{"name": "r"}]


def test_policy_admits_only_the_run(rendered: Render) -> None:
    rendering = rendered()
    spec = find(rendering, "NetworkPolicy")["spec"]
    selector = {"matchLabels": {"ddpk8s.dev/job": "reviews", "ddpk8s.dev/run-id": "run-1"}}
    assert spec == {
        "podSelector": selector,
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": selector}]}],
    }
    assert selector["matchLabels"].items() <= pods(rendering)[0]["metadata"]["labels"].items()
    assert "NetworkPolicy" not in [each["kind"] for each in rendered("spec.networkPolicy=false").objects]


def test_every_object_carries_namespace_and_labels(rendered: Render) -> None:
    rendering = rendered(
        *GPU, "metadata.namespace=ml", "metadata.labels={team: nlp}", "spec.resources.deviceClass=g"
    )
    for each in rendering.objects:
        assert each["metadata"]["namespace"] == "ml"
        assert each["metadata"]["labels"].items() >= {"team": "nlp", "ddpk8s.dev/run-id": "run-1"}.items()


def test_run_id_follows_from_the_job_and_reaches_every_file(rendered: Render) -> None:
    first, second = rendered(run_id=None), rendered(run_id=None)
    assert first.run_id == second.run_id
    assert first.run_id != rendered("spec.training.seed=7", run_id=None).run_id
    data = next(each["data"] for each in first.objects if "data" in each)
    assert {json.loads(text)["runId"] for text in data.values()} == {first.run_id}


@pytest.mark.parametrize("backend", BACKENDS)
def test_grace_and_lost_nodes(rendered: Render, backend: str) -> None:
    for pod in pods(rendered(backend, "spec.failurePolicy.gracePeriod=90500ms")):
        assert pod["spec"]["terminationGracePeriodSeconds"] == 91
        seconds = {
            each["key"]: each["tolerationSeconds"]
            for each in pod["spec"]["tolerations"]
            if "tolerationSeconds" in each
        }
        assert seconds == {"node.kubernetes.io/not-ready": 60, "node.kubernetes.io/unreachable": 60}


@pytest.mark.parametrize(
    ("resource", "key"), [("amd.com/gpu", "amd.com/gpu"), ("gpu.intel.com/i915", "gpu.intel.com/i915")]
)
def test_gpus_of_other_makers_are_asked_for_and_tolerated(rendered: Render, resource: str, key: str) -> None:
    rendering = rendered(
        "spec.resources.gpu=2", f"spec.resources.gpuResource={resource}", "spec.fabric.profile=tcp"
    )
    assert container(rendering)["resources"]["limits"] == {resource: "2"}
    plan = next(each["data"]["agent.json"] for each in rendering.objects if "data" in each)
    assert json.loads(plan)["checks"]["gpus"] == 0  # the agent counts NVIDIA's devices only
    assert {"key": key, "operator": "Exists", "effect": "NoSchedule"} in pods(rendering)[0]["spec"][
        "tolerations"
    ]
