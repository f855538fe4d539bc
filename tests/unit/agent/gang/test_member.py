"""A member, told event by event what happens to it."""

from typing import Any

from ddpk8s_agent import exitcodes
from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.joining import Identity, State
from ddpk8s_agent.gang.ledger import FREE, TRAINED, Ledger, Record
from ddpk8s_agent.gang.member import Member
from ddpk8s_agent.gang.timing import Timing

TIMING = Timing()
BOOKS = Ledger("t", attempt=0).to_document()


class Node:
    """A member of node rank 1; the coordinator is ours."""

    def __init__(self, rank: int = 1, ledger: Ledger | None = None) -> None:
        self.now = 0.0
        identity = Identity("t", rank, 2, 2, "hash", f"{rank}.a")
        self.member = Member(identity, ledger or Ledger("t"), TIMING, 0.0)

    def tell(self, event: e.Event, seconds: float = 0.1) -> list[e.Action]:
        self.now += seconds
        return self.member.handle(event, self.now)

    def hear(self, kind: str, attempt: int = 0, **content: Any) -> list[e.Action]:
        head = {"v": 1, "type": kind, "attempt": attempt, "node": 0, "inc": "0.a", "rdzv": "r", **content}
        return self.tell(e.Received(head))

    def run(self) -> None:
        self.tell(e.Connected())
        self.hear("WELCOME", ledger=Ledger("t").to_document())
        self.hear("PREPARE", port=29500)
        self.tell(e.Armed("r"))
        started = self.hear("START", port=29500, ledger=BOOKS)
        assert any(isinstance(action, e.Start) for action in started)

    def verdict(self, code: int | None = None, record: Record | None = None) -> list[e.Action]:
        ledger = Ledger("t", attempt=0, records={0: record or Record(FREE)}).to_document()
        return self.hear("VERDICT", verdict={}, ledger=ledger, exit=code, pause=0.0, restarts=0)


def kinds(actions: list[e.Action]) -> list[str]:
    return [each.message["type"] if isinstance(each, e.Send) else type(each).__name__ for each in actions]


def test_it_ends_its_processes_when_the_coordinator_falls_silent_and_says_that_it_does() -> None:
    node = Node()
    node.run()
    actions = node.tell(e.Tick(), TIMING.peer_deadline + 1)
    assert kinds(actions) == ["CUT", "Drain", "Say", "Dial"]
    assert node.member.state is State.DRAIN


def test_it_hands_its_evidence_to_the_next_coordinator() -> None:
    node = Node()
    node.run()
    node.tell(e.Disconnected("closed"))
    node.tell(e.Ended(False, {"launcher": "failed"}))
    hello = node.tell(e.Connected())[0]
    assert isinstance(hello, e.Send)
    assert (hello.message["of"], hello.message["evidence"]) == (0, {"launcher": "failed"})
    assert (hello.message["fresh"], hello.message["silent"]) == (False, None)


def test_it_says_that_the_coordinator_may_live_on_when_the_end_came_long_after_its_last_sign() -> None:
    node = Node()
    node.run()
    node.tell(e.Disconnected("reset"), TIMING.eof_is_death + 1)
    hello = node.tell(e.Connected(), 5.0)[0]
    assert isinstance(hello, e.Send)
    assert hello.message["silent"] == ["0.a", 5.0]


def test_the_last_words_of_a_connection_that_was_given_up_are_not_heard() -> None:
    node = Node()
    node.run()
    node.tell(e.Disconnected("closed"))
    node.tell(e.Ended(False, {}))
    assert node.verdict(code=1) == []
    assert node.member.state is State.JUDGED


def test_a_verdict_is_told_once_and_confirmed_each_time() -> None:
    node = Node()
    node.run()
    node.tell(e.Ended(False, {}))
    assert kinds(node.verdict()) == ["Remember", "ACK", "Told"]
    assert kinds(node.verdict()) == ["ACK"]


def test_no_verdict_is_taken_while_processes_live() -> None:
    node = Node()
    node.run()
    assert node.verdict(code=0) == []
    assert node.member.state is State.RUN


def test_it_leaves_at_once_when_it_is_asked_to_stop_and_nothing_runs() -> None:
    node = Node()
    assert kinds(node.tell(e.StopAsked())) == ["Exit"]
    waiting = Node()
    waiting.tell(e.Connected())
    waiting.hear("WELCOME", ledger=BOOKS)
    actions = waiting.tell(e.StopAsked())
    assert kinds(actions) == ["LEAVE", "Exit"]
    assert isinstance(actions[1], e.Exit)
    assert actions[1].code == exitcodes.STOPPED


def test_node_0_waits_longer_for_the_others_than_they_for_it() -> None:
    for rank, waits in ((1, False), (0, True)):
        node = Node(rank)
        node.run()
        assert kinds(node.tell(e.StopAsked())) == ["STOPPING", "Stop"]
        node.tell(e.Ended(False, {}))
        node.hear("HB", phase="ending", owed=True)
        assert (node.tell(e.Tick(), 6.0)[-1:] == []) is waits or node.member.state is State.JUDGED
        assert (node.member.state is State.JUDGED) is waits


def test_a_stop_that_comes_with_the_success_leaves_with_the_success() -> None:
    node = Node()
    node.run()
    node.tell(e.Ended(True, {}))
    node.tell(e.StopAsked())
    last = node.verdict(code=0, record=Record(TRAINED))[-1]
    assert isinstance(last, e.Exit)
    assert last.code == exitcodes.TRAINED


def test_it_leaves_when_the_volume_says_that_the_job_is_over_while_it_dials() -> None:
    node = Node()
    end = Ledger("t", attempt=0, records={0: Record(TRAINED)}, end={"code": 0, "word": {}})
    assert kinds(node.tell(e.Learned(end.to_document()))) == ["Remember", "Exit"]


def test_three_heartbeats_that_know_nothing_of_the_attempt_end_it() -> None:
    node = Node()
    node.run()
    for _ in range(2):
        assert node.hear("HB", phase="gather", rdzv="") == []
    assert "Drain" in kinds(node.hear("HB", phase="gather", rdzv=""))
