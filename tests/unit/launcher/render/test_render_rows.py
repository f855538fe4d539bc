"""Public reports of what launchers got wrong (`field-notes/launchers.md`, section 3): ours does not.

Each test names the row. What is refused instead of rendered stands in `test_render_refusals.py`.
"""

import json

import pytest
from tests.unit.launcher.render.conftest import GPU, Render, container, environment, find, pods

from ddpk8s.render.constants import NAME_LIMIT
from ddpk8s.render.plan import plan_map
from ddpk8s.render.summary import summary

PYTORCH = "spec.backend=PyTorchJob"
BACKENDS = ["spec.backend=IndexedJob", PYTORCH]
QUEUE = ("spec.scheduling.queue=team-a", "spec.scheduling.topologyKey=example.com/rack")


@pytest.mark.parametrize("backend", BACKENDS)
def test_row_1_4_longest_job_name_leaves_all_derived_names_within_the_limit(
    rendered: Render, backend: str
) -> None:
    rendering = rendered(
        f"metadata.name={'n' * 46}",
        "spec.topology.nnodes=4096",
        "spec.training.batch.globalBatch=8192",
        backend,
    )
    names = rendering.backend.derived_names(rendering.context)
    assert max(map(len, names)) <= NAME_LIMIT
    assert all(len(each["metadata"]["name"]) <= NAME_LIMIT for each in rendering.objects)


@pytest.mark.parametrize("backend", BACKENDS)
def test_row_6_world_size_is_shown_as_nodes_times_processes(rendered: Render, backend: str) -> None:
    line = summary(rendered(backend, "spec.topology.nprocPerNode=4"))[0]
    assert "2 nodes x 4 processes = world size 8" in line


@pytest.mark.parametrize("backend", BACKENDS)
def test_row_7_processes_are_a_number_taken_from_the_gpus(rendered: Render, backend: str) -> None:
    rendering = rendered(backend, *GPU)
    assert json.loads(find_plan(rendering))["nprocPerNode"] == 8
    if backend == PYTORCH:
        assert find(rendering, "PyTorchJob")["spec"]["nprocPerNode"] == "8"


def find_plan(rendering) -> str:  # type: ignore[no-untyped-def]
    """Return the agent's plan as text."""
    (plan,) = [
        each["data"]["agent.json"] for each in rendering.objects if "agent.json" in each.get("data", {})
    ]
    return str(plan)


@pytest.mark.parametrize(
    ("backend", "address"), [(BACKENDS[0], "reviews-0.reviews-gang"), (PYTORCH, "reviews-master-0")]
)
def test_row_10_every_node_is_told_the_same_address(rendered: Render, backend: str, address: str) -> None:
    rendering = rendered(backend)
    assert json.loads(find_plan(rendering))["masterAddr"] == address
    plans = {volume["configMap"]["name"] for pod in pods(rendering) for volume in pod["spec"]["volumes"]
             if volume["name"] == "ddpk8s-plan"}  # fmt: skip
    assert plans == {plan_map(rendering.context, address)["metadata"]["name"]}


@pytest.mark.parametrize("backend", BACKENDS)
def test_row_11_no_variable_is_there_twice(rendered: Render, backend: str) -> None:
    names = environment(rendered(backend, "spec.env={HOME: /data/home, NCCL_DEBUG: INFO}", *GPU))
    assert names["HOME"] == "/data/home"
    assert names["NCCL_DEBUG"] == "INFO"
    # The operator appends this one to ours.
    assert ("PYTHONUNBUFFERED" in names) == (backend != PYTORCH)


def test_row_14_nobody_has_to_recognize_its_own_name(rendered: Render) -> None:
    rendering = rendered()
    rank = environment(rendering)["DDPK8S_NODE_RANK"]["fieldRef"]["fieldPath"]
    assert rank == "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    master, worker = pods(rendered(PYTORCH))
    assert {"name": "DDPK8S_NODE_RANK", "value": "0"} in master["spec"]["containers"][0]["env"]
    index = next(
        variable["valueFrom"]["fieldRef"]["fieldPath"]
        for variable in worker["spec"]["containers"][0]["env"]
        if variable["name"] == "DDPK8S_WORKER_INDEX"
    )
    assert index == "metadata.labels['training.kubeflow.org/replica-index']"


def test_row_15_24_names_resolve_before_pods_are_ready(rendered: Render) -> None:
    rendering = rendered()
    service = find(rendering, "Service")
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["clusterIP"] == "None"
    pod = pods(rendering)[0]
    assert pod["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()


@pytest.mark.parametrize("backend", BACKENDS)
def test_row_19_20_66_no_init_container_and_no_foreign_image(rendered: Render, backend: str) -> None:
    for pod in pods(rendered(backend)):
        assert "initContainers" not in pod["spec"]
        assert [each["image"] for each in pod["spec"]["containers"]] == ["registry.example/trainer:1.0"]
        assert pod["spec"]["containers"][0]["command"][0] == "python3"


@pytest.mark.parametrize("backend", BACKENDS)
def test_row_21_meshes_stay_out_by_label_and_annotation_of_the_pod(rendered: Render, backend: str) -> None:
    for pod in pods(rendered(backend)):
        assert pod["metadata"]["labels"]["sidecar.istio.io/inject"] == "false"
        assert pod["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
        assert pod["metadata"]["annotations"]["linkerd.io/inject"] == "disabled"


def test_row_31_on_the_nodes_network_ports_are_the_jobs_own_and_names_resolve(rendered: Render) -> None:
    on_host = "spec.podTemplate={spec: {hostNetwork: true}}"
    ports = set()
    for name in ("one", "two", "three"):
        rendering = rendered(f"metadata.name={name}", on_host)
        pod = pods(rendering)[0]["spec"]
        assert pod["dnsPolicy"] == "ClusterFirstWithHostNet"
        assert pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (port,) = [each["containerPort"] for each in container(rendering)["ports"]]
        assert json.loads(find_plan(rendering))["gangPort"] == port
        assert find(rendering, "Service")["spec"]["ports"][0]["port"] == port
        ports.add(port)
    assert len(ports) > 1


def test_row_35_survivors_do_not_keep_their_gpus(rendered: Render) -> None:
    assert find(rendered(PYTORCH), "PyTorchJob")["spec"]["runPolicy"]["cleanPodPolicy"] == "Running"
    job = find(rendered(), "Job")["spec"]
    assert (job["maxFailedIndexes"], job["successPolicy"]) == (0, {"rules": [{"succeededIndexes": "0"}]})


@pytest.mark.parametrize("backend", BACKENDS)
def test_row_36_restarts_are_told_in_words(rendered: Render, backend: str) -> None:
    assert any(line.startswith("  restarts: a pod that ") for line in summary(rendered(backend)))


def test_row_42_restarts_of_the_gang_leave_room_for_replaced_pods(rendered: Render) -> None:
    job = find(rendered("spec.failurePolicy.maxRestarts=5"), "Job")["spec"]
    assert job["backoffLimitPerIndex"] == 8
    assert "backoffLimit" not in job  # it counts pods of all indexes together


def test_row_44_45_lost_and_preempted_pods_cost_nothing(rendered: Render) -> None:
    rules = find(rendered(), "Job")["spec"]["podFailurePolicy"]["rules"]
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert rules[0] == ignored
    codes = {rule["action"]: rule["onExitCodes"] for rule in rules[1:]}
    assert all(each["containerName"] == "pytorch" for each in codes.values())
    assert codes["Ignore"]["values"] == [143]
    assert codes["FailJob"]["values"] == [1, 2, 78, 126, 127, 128]


@pytest.mark.parametrize("backend", BACKENDS)
def test_row_47_a_gang_without_a_queue_is_told_of_it(rendered: Render, backend: str) -> None:
    assert any("no queue" in line for line in summary(rendered(backend)))
    assert not any("no queue" in line for line in summary(rendered(backend, *QUEUE)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_row_51_queue_is_on_the_object_and_it_never_starts_by_itself(rendered: Render, backend: str) -> None:
    job = rendered(backend, *QUEUE).objects[-1]
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
    assert job["spec"].get("suspend") or job["spec"]["runPolicy"]["suspend"]


def test_row_55_claims_of_several_nodes_say_the_access_mode_they_need(rendered: Render) -> None:
    said = "claims checkpoints, data: pods on 2 nodes mount them, so their access mode must be ReadWriteMany"
    assert any(said in line for line in summary(rendered()))
    assert not any("access mode" in line for line in summary(rendered("spec.topology.nnodes=1")))


@pytest.mark.parametrize("quantity", ["1.5Gi", "1536Mi", "2000M", "0.5Ti"])
def test_row_62_quantities_reach_the_pod_as_written(rendered: Render, quantity: str) -> None:
    resources = container(rendered(f"spec.resources.memory={quantity}"))["resources"]
    assert resources == {"requests": {"memory": quantity}, "limits": {"memory": quantity}}


def test_row_64_slices_are_devices_and_one_process_each(rendered: Render) -> None:
    sets = ("spec.resources.gpuResource=nvidia.com/mig-1g.10gb", "spec.resources.gpu=1")
    rendering = rendered(*sets, "spec.topology.nnodes=1")
    assert container(rendering)["resources"]["limits"] == {"nvidia.com/mig-1g.10gb": "1"}
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in pods(rendering)[0][
        "spec"
    ]["tolerations"]


def test_row_69_70_pods_are_placed_near_each_other(rendered: Render) -> None:
    master, worker = pods(rendered(PYTORCH, *QUEUE))
    for pod in (master, worker):
        annotations = pod["metadata"]["annotations"]
        assert annotations["kueue.x-k8s.io/podset-preferred-topology"] == "example.com/rack"
        assert annotations["kueue.x-k8s.io/podset-group-name"] == "reviews"
        near = pod["spec"]["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        assert near[0]["podAffinityTerm"]["topologyKey"] == "example.com/rack"


def test_row_71_deadline_is_in_the_object(rendered: Render) -> None:
    deadline = "spec.failurePolicy.activeDeadline=90m"
    assert find(rendered(deadline), "Job")["spec"]["activeDeadlineSeconds"] == 5400
    run_policy = find(rendered(deadline, PYTORCH), "PyTorchJob")["spec"]["runPolicy"]
    assert run_policy["activeDeadlineSeconds"] == 5400


def test_row_74_pods_know_their_own_names(rendered: Render) -> None:
    names = environment(rendered())
    fields = {
        name: names[f"DDPK8S_{name}"]["fieldRef"]["fieldPath"] for name in ("POD_NAME", "POD_UID", "POD_IP")
    }
    assert fields == {"POD_NAME": "metadata.name", "POD_UID": "metadata.uid", "POD_IP": "status.podIP"}


@pytest.mark.parametrize("backend", BACKENDS)
def test_row_75_init_containers_know_their_place_in_the_gang(rendered: Render, backend: str) -> None:
    template = "spec.podTemplate={spec: {initContainers: [{name: fetch, image: registry.example/fetch}]}}"
    for pod in pods(rendered(backend, template)):
        names = {variable["name"] for variable in pod["spec"]["initContainers"][0]["env"]}
        assert {"DDPK8S_NNODES", "DDPK8S_RUN_ID"} < names
        assert {"DDPK8S_NODE_RANK", "DDPK8S_WORKER_INDEX"} & names
