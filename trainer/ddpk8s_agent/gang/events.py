"""What the machines are told, and what they ask for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ddpk8s_agent.gang.messages import Message

# --- what a member is told


@dataclass(frozen=True)
class Connected:
    """The coordinator can be spoken to."""


@dataclass(frozen=True)
class Disconnected:
    """The connection to the coordinator ended, or could not be made; `why` for people, `silent` if it timed out."""

    why: str
    silent: bool = False


@dataclass(frozen=True)
class Received:
    """A message came; `conn` says where from, for the coordinator."""

    message: Message
    conn: int = 0


@dataclass(frozen=True)
class Armed:
    """The check before a start is done; `problem` is empty if this node can start.

    A `mistake` does not go away by itself, and ends the job; `hint` says what to change.
    """

    rdzv: str
    problem: str = ""
    mistake: bool = False
    hint: str = ""


@dataclass(frozen=True)
class Suspected:
    """Something ended on this node, while the attempt runs."""

    hint: str


@dataclass(frozen=True)
class Ended:
    """The attempt is over on this node, no process is left."""

    ok: bool
    evidence: Mapping[str, Any]


@dataclass(frozen=True)
class StopAsked:
    """Somebody asked this agent to stop."""


@dataclass(frozen=True)
class Beats:
    """How far the local ranks are: rank, newest step, seconds since the last sign of life, whether it ever gave one."""

    ranks: tuple[tuple[int, int | None, float, bool], ...]


@dataclass(frozen=True)
class Learned:
    """The ledger was read again from the shared volume: the job may be over while this agent still waits.

    For the coordinator on node 0, and for the member elsewhere.
    """

    ledger: Mapping[str, Any]


@dataclass(frozen=True)
class Tick:
    """Time went on."""


# --- what the coordinator is told besides


@dataclass(frozen=True)
class Closed:
    """A connection ended: `silent` if it only timed out."""

    conn: int
    silent: bool


@dataclass(frozen=True)
class Committed:
    """A `Commit` is through: the one with this serial, or None for the newest.

    `written` says that the ledger is on a volume, where the next coordinator finds it.
    """

    serial: int | None = None
    written: bool = False


# --- what the machines ask for


@dataclass(frozen=True)
class Send:
    """Send a message to the coordinator, or on a connection of it."""

    message: Message
    conn: int = 0


@dataclass(frozen=True)
class Dial:
    """Close the connection to the coordinator, if there is one, and make another one after a pause."""

    after: float


@dataclass(frozen=True)
class Hangup:
    """Close a connection of the coordinator."""

    conn: int


@dataclass(frozen=True)
class Arm:
    """Check that this node can start: no process left, the port free, `mark` in sight where node 0 left it."""

    attempt: int
    rdzv: str
    port: int
    mark: str = ""


@dataclass(frozen=True)
class Start:
    """Start torchrun."""

    attempt: int
    rdzv: str
    port: int


@dataclass(frozen=True)
class Drain:
    """End the attempt here: SIGTERM, after `grace` seconds SIGKILL; for a hang, stacks first."""

    why: str
    grace: float


@dataclass(frozen=True)
class Stop:
    """Pass the request to stop on to the workers."""


@dataclass(frozen=True)
class Told:
    """The verdict on an attempt, for people; `own` on the node that decided."""

    attempt: int
    verdict: Mapping[str, Any]
    pause: float
    exit: int | None
    restarts: int


@dataclass(frozen=True)
class Exit:
    """Leave with a code; `word` is the last word, if it is not that of the verdict."""

    code: int
    word: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Remember:
    """Keep the ledger in this node's own file."""

    ledger: Mapping[str, Any]


@dataclass(frozen=True)
class Commit:
    """Merge the ledger into the one on the shared volume, and say when it is there (not where there is none)."""

    ledger: Mapping[str, Any]
    serial: int = 0


@dataclass(frozen=True)
class Say:
    """Tell people."""

    text: str


Event = (
    Connected
    | Disconnected
    | Received
    | Armed
    | Suspected
    | Ended
    | StopAsked
    | Beats
    | Learned
    | Tick
    | Closed
    | Committed
)
Action = Send | Dial | Hangup | Arm | Start | Drain | Stop | Told | Exit | Remember | Commit | Say
