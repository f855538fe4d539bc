"""Names, paths and ports that a pod of ours has, whatever the job."""

from pathlib import PurePosixPath

CONTAINER = "pytorch"
"""Our container in every backend: Kubeflow's operator looks for it by this name, our rules name it too."""

PREFIX = "ddpk8s-"
"""Of our volumes; no volume of a job may begin so."""

ETC = PurePosixPath("/etc/ddpk8s")
PLAN_FILE = str(ETC / "agent.json")
TRAINING_FILE = str(ETC / "training.json")

OPT = PurePosixPath("/opt/ddpk8s")
AGENT_DIRECTORY = str(OPT / "agent")
AGENT_FILE = "agent.pyz"
ARCHIVE_DIRECTORY = str(OPT / "archive")
ARCHIVE_FILE = "code.zip"
CODE_DIRECTORY = str(OPT / "code")
STATE_DIRECTORY = str(OPT / "state")
HOME_DIRECTORY = str(OPT / "home")
SHARED_MEMORY = "/dev/shm"
TERMINATION_FILE = "/dev/termination-log"

GANG_PORT = 29400
GANG_PORTS = range(29400, 29500)
"""One of these, by the job's name, where pods share the ports of their node."""
TORCHRUN_PORTS = range(29500, 29600)
"""From which the agents take a port for each attempt."""

JOB_LABEL = "ddpk8s.dev/job"
RUN_LABEL = "ddpk8s.dev/run-id"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"

USER = 1000
"""User, group and group of the volumes, unless the pod template says otherwise."""
LOST_NODE_SECONDS = 60
"""How long a pod stays on a node that does not answer."""
NAME_LIMIT = 63
"""Longest DNS label."""
