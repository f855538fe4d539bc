"""The `entrypoint` section: the user's own script under the same torchrun."""

from ddpk8s.spec.base import Section, field
from ddpk8s.spec.names import Text


class Entrypoint(Section):
    """Your own script, started by torchrun on every node, instead of `training`."""

    script: Text = field(
        "Python script: a path inside `code`, or without `code` an absolute path in the image or on a "
        "volume.",
        min_length=1,
        example="train.py",
    )
    args: list[Text] = field("Arguments of the script; quote numbers.", list, example=["--lr", "1e-3"])
    code: Text | None = field(
        "Directory of your code, relative to the job file; it is brought into every pod and is the "
        "working directory.",
        None,
        example="./src",
    )
