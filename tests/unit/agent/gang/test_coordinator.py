"""The coordinator, told message by message what its members say."""

from collections.abc import Sequence
from typing import Any

from tests.unit.agent.gang.documents import DECIDER, VICTIMS, ended, node

from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.coordinator import Coordinator
from ddpk8s_agent.gang.joining import Identity
from ddpk8s_agent.gang.ledger import STOPPED, TRAINED, Ledger, Record
from ddpk8s_agent.gang.messages import Message
from ddpk8s_agent.gang.timing import Timing

TIMING = Timing()
STOPPED_1 = node(1, ended(2), ended(3), stop_requested=True)


class Gang:
    """A coordinator of two nodes; the members are ours."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.now = 0.0
        identity = Identity("t", 0, 2, 2, "hash", "0.a")
        self.boss = Coordinator(identity, ledger or Ledger("t"), TIMING, DECIDER, range(29500, 29600), 0.0)
        self.incs = {0: "0.a", 1: "1.a"}
        self.sent: list[tuple[int, Message]] = []

    @property
    def phase(self) -> str:
        return self.boss.phase.value

    def tell(self, event: e.Event) -> list[e.Action]:
        actions = self.boss.handle(event, self.now)
        self.sent += [(each.conn, each.message) for each in actions if isinstance(each, e.Send)]
        return actions

    def say(self, node: int, kind: str, attempt: int = 0, **content: Any) -> list[e.Action]:
        head = {"v": 1, "type": kind, "attempt": attempt, "node": node, "inc": self.incs[node]}
        return self.tell(e.Received({**head, "rdzv": self.boss._rdzv, **content}, node))

    def hello(self, node: int, **content: Any) -> list[e.Action]:
        rest = {"token": "t", "nnodes": 2, "nproc": 2, "spec": "hash", "fresh": True}
        return self.say(node, "HELLO", **{**rest, "ledger": Ledger("t").to_document(), **content})

    def start(self) -> None:
        for number in (0, 1):
            self.hello(number)
        self.tick()
        for number in (0, 1):
            self.say(number, "READY")
        assert self.phase == "running"

    def tick(self, seconds: float = 0.1) -> list[e.Action]:
        self.now += seconds
        return self.tell(e.Tick())

    def got(self, node: int, kind: str) -> Sequence[Message]:
        return [message for conn, message in self.sent if conn == node and message["type"] == kind]


def test_nothing_starts_before_all_are_ready() -> None:
    gang = Gang()
    gang.hello(0)
    gang.tick()
    assert not gang.got(0, "PREPARE")
    gang.hello(1)
    gang.tick()
    gang.say(1, "READY")
    assert not gang.got(0, "START")
    gang.say(0, "READY")
    assert len(gang.got(0, "START")) == len(gang.got(1, "START")) == 1


def test_the_books_go_to_everybody_with_the_start() -> None:
    gang = Gang()
    known = Ledger("t", attempt=0, records={0: Record(STOPPED, "x")})
    gang.hello(0)
    gang.hello(1, ledger=known.to_document())
    gang.tick()
    for number in (0, 1):
        gang.say(number, "READY")
    start = gang.got(0, "START")[0]
    assert (start["attempt"], list(start["ledger"]["records"])) == (1, ["0"])


def test_node_0_is_told_last_and_only_when_the_others_have_confirmed() -> None:
    gang = Gang()
    gang.start()
    for number in (1, 0):
        gang.say(number, "DONE", ok=True, evidence=node(number, launcher="finished", finished={"step": 9}))
    assert gang.phase == "committing"
    gang.tell(e.Committed(None, True))
    assert gang.got(1, "VERDICT")
    assert not gang.got(0, "VERDICT")
    gang.say(1, "ACK", of=0)
    assert gang.got(0, "VERDICT")[0]["exit"] == 0
    assert gang.boss.ledger.records[0].kind == TRAINED


def test_an_older_commit_that_arrives_late_announces_nothing() -> None:
    gang = Gang()
    gang.start()
    for number in (1, 0):
        gang.say(number, "DONE", ok=False, evidence=node(number, *VICTIMS))
    gang.tell(e.Committed(1, True))
    assert gang.phase == "committing"
    gang.tell(e.Committed(2, True))
    assert gang.phase == "verdict"


def test_who_leaves_after_its_evidence_is_not_lost_and_the_gang_waits_for_its_return() -> None:
    gang = Gang()
    gang.start()
    gang.say(1, "STOPPING")
    gang.say(1, "DONE", ok=False, evidence=STOPPED_1)
    gang.say(1, "LEAVE")
    assert gang.phase == "ending"
    gang.say(0, "DONE", ok=False, evidence=node(0, *VICTIMS))
    gang.tell(e.Committed(None, True))
    record = gang.boss.ledger.records[0]
    assert (record.kind, record.killed) == (STOPPED, ())
    assert gang.got(0, "VERDICT")[0]["exit"] is None
    assert gang.phase == "gather"


def test_node_0_still_gives_the_verdict_to_the_others_when_it_is_asked_to_stop() -> None:
    gang = Gang()
    gang.start()
    gang.say(0, "STOPPING")
    gang.say(0, "DONE", ok=False, evidence=node(0, ended(0), ended(1), stop_requested=True))
    assert gang.got(1, "END")[0]["why"] == "stop"
    gang.say(1, "DONE", ok=False, evidence=node(1, ended(2), ended(3), drained="stop"))
    gang.tell(e.Committed(None, True))
    assert gang.got(1, "VERDICT")[0]["exit"] is None
    gang.say(1, "ACK", of=0)
    assert gang.got(0, "VERDICT")


def test_the_others_hear_that_node_0_leaves() -> None:
    gang = Gang()
    gang.start()
    gang.say(0, "LEAVE")
    assert gang.got(1, "LEAVE")


def test_a_late_joiner_leaves_the_running_attempt_alone() -> None:
    gang = Gang()
    gang.start()
    gang.incs[2] = "1.b"
    gang.tell(e.Received({**_hello_of(gang), "node": 1, "inc": "1.b"}, 9))
    assert gang.phase == "running"
    assert gang.got(9, "WAITING")


def _hello_of(gang: Gang) -> Message:
    rest = {"token": "t", "nnodes": 2, "nproc": 2, "spec": "hash", "fresh": True}
    return {"v": 1, "type": "HELLO", "attempt": -1, "ledger": Ledger("t").to_document(), **rest}


def test_a_new_coordinator_decides_what_its_predecessor_did_not() -> None:
    gang = Gang()
    gang.hello(0)
    ledger = Ledger("t", attempt=0).to_document()
    gang.hello(1, ledger=ledger, fresh=False, of=0, ok=False, evidence=STOPPED_1, state="judged")
    gang.tick()
    assert gang.phase == "committing"
    assert gang.boss.ledger.records[0].kind == STOPPED


def test_a_new_coordinator_waits_when_nobody_saw_the_processes_of_a_node_end() -> None:
    gang = Gang(Ledger("t", attempt=0))
    for number in (0, 1):
        gang.hello(number)
    gang.tick()
    gang.tell(e.Committed(None, True))
    gang.say(1, "ACK", of=0)
    gang.tick()
    assert gang.phase == "gather"
    while gang.now < TIMING.fence - 1:
        for number in (0, 1):
            gang.say(number, "HB", state="wait", ranks=[])
        gang.tick(1.0)
    assert not gang.got(1, "PREPARE")
    gang.tick(2.0)
    assert gang.got(1, "PREPARE")


def test_the_others_are_told_of_the_end_that_stands_on_the_volume() -> None:
    gang = Gang(Ledger("t", attempt=0, records={0: Record(TRAINED)}, end={"code": 0, "word": {}}))
    gang.hello(0)
    gang.tick()
    assert not gang.got(0, "EXIT"), "the other one may still come"
    gang.hello(1, state="judged")
    gang.tick()
    assert [gang.got(number, "EXIT")[0]["code"] for number in (0, 1)] == [0, 0]


def test_no_verdict_is_given_to_people_while_only_this_agent_knows_it() -> None:
    gang = Gang()
    gang.start()
    gang.tell(e.Closed(1, silent=False))
    gang.say(0, "DONE", ok=False, evidence=node(0, *VICTIMS))
    gang.tell(e.Committed(None, False))
    assert not gang.got(0, "VERDICT")
    gang.incs[1] = "1.b"
    gang.hello(1)
    gang.say(1, "ACK", of=0)
    assert gang.got(0, "VERDICT")
