"""What each attempt of one launch came to. Every member keeps a copy, so it survives the loss of any of them.

Attempts are keys: whoever reports the end of an attempt again, and whoever decides it again, cannot charge it
twice. Copies are merged by union.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

CHARGED, FREE, STOPPED, TRAINED = "charged", "free", "stopped", "trained"
KINDS = (CHARGED, TRAINED, STOPPED, FREE)
_LONGEST_WHY = 300
_FULL_RECORDS = 20
_MOST_BYTES = 16 * 1024


@dataclass(frozen=True)
class Record:
    """What one attempt came to.

    Attributes:
        kind: `charged`, `free` (a lost node, a taken port), `stopped` or `trained`.
        why: In a sentence.
        step: Newest step seen, if any.
        killed: Node ranks whose agent died without a word.
        unseen: Node ranks whose processes nobody saw end.
        port: Whether it was only that torchrun's port was taken.
    """

    kind: str
    why: str = ""
    step: int | None = None
    killed: tuple[int, ...] = ()
    unseen: tuple[int, ...] = ()
    port: bool = False


@dataclass(frozen=True)
class Ledger:
    """The books of one launch.

    Attributes:
        token: The launch: run id and launch id.
        base: Newest attempt of launches before this one; -1 if there was none.
        attempt: Newest attempt that was started.
        records: What attempts came to, by number.
        end: How the job ended: `code` of the agents, and the last `word`; None while it goes on.
    """

    token: str
    base: int = -1
    attempt: int = -1
    records: Mapping[int, Record] = field(default_factory=dict)
    end: Mapping[str, Any] | None = None

    @property
    def undecided(self) -> int | None:
        """The attempt that was started and has no record yet."""
        return self.attempt if self.attempt > self.base and self.attempt not in self.records else None

    @property
    def charged(self) -> int:
        """How many attempts were charged."""
        return sum(record.kind == CHARGED for record in self.records.values())

    def started(self, attempt: int) -> "Ledger":
        """Return the ledger after the start of an attempt."""
        return replace(self, attempt=max(self.attempt, attempt))

    def decided(self, attempt: int, record: Record) -> "Ledger":
        """Return the ledger with a record; one that is there already stays."""
        if attempt in self.records:
            return self
        return replace(self, records={**self.records, attempt: record})

    def ended(self, end: Mapping[str, Any]) -> "Ledger":
        """Return the ledger of a job that is over."""
        return replace(self, end=self.end or dict(end))

    def merge(self, other: "Ledger") -> "Ledger":
        """Return the union of two copies of the same launch."""
        records = dict(self.records)
        for attempt, record in other.records.items():
            mine = records.get(attempt, record)
            # Two coordinators, one after the other, may have decided differently before anybody heard of it.
            records[attempt] = min(mine, record, key=_order)
        return replace(
            self,
            base=max(self.base, other.base),
            attempt=max(self.attempt, other.attempt),
            records=records,
            end=min((end for end in (self.end, other.end) if end), key=_canonical, default=None),
        )

    def barren(self) -> int:
        """Return how many attempts in a row, counted from the newest, came no further; stops do not count."""
        best: int | None = None
        barren = 0
        for attempt in sorted(self.records):
            record = self.records[attempt]
            if record.kind == STOPPED or record.port:
                continue
            if _further(record.step, best):
                best, barren = record.step, 0
            else:
                barren += 1
        return barren

    def killed_since_progress(self, pardoned: Collection[tuple[int, int]] = ()) -> set[int]:
        """Return the node ranks that died without a word since an attempt last came further.

        `pardoned` are attempts and node ranks that only looked so: the agent came back.
        """
        best: int | None = None
        killed: set[int] = set()
        for attempt in sorted(self.records):
            record = self.records[attempt]
            if _further(record.step, best):
                best, killed = record.step, set()
            killed |= {node for node in record.killed if (attempt, node) not in pardoned}
        return killed

    def best_step(self) -> int | None:
        """Return the newest step of any attempt."""
        return max((record.step for record in self.records.values() if record.step is not None), default=None)

    def ports_taken(self) -> int:
        """Return how many attempts only found their port taken."""
        return sum(record.port for record in self.records.values())

    def to_document(self) -> dict[str, Any]:
        """Return the ledger for JSON, of at most 16 KiB.

        Texts of old records are left out, then old records that cost nothing and say nothing.
        """
        for full in (_FULL_RECORDS, 5, 0):
            document = self._document(sorted(self.records), full)
            if len(_canonical(document).encode("utf-8", "replace")) <= _MOST_BYTES:
                return document
        numbers = sorted(self.records)
        telling = [n for n in numbers[:-100] if self.records[n].kind in (CHARGED, TRAINED)]
        return self._document([*telling[-100:], *numbers[-100:]], 0)

    def _document(self, numbers: list[int], full: int) -> dict[str, Any]:
        told = set(numbers[-full:]) if full else set()
        return {
            "token": self.token,
            "base": self.base,
            "attempt": self.attempt,
            "records": {str(n): _document(self.records[n], full=n in told) for n in numbers},
            "end": None if self.end is None else dict(self.end),
        }


def from_document(document: Mapping[str, Any]) -> Ledger:
    """Return the ledger in a JSON object.

    Raises:
        ValueError, KeyError, TypeError: It is none.
    """
    end = document.get("end")
    if end is not None:
        end = {**end, "code": int(end["code"])}
    return Ledger(
        token=str(document["token"]),
        base=int(document["base"]),
        attempt=int(document["attempt"]),
        records={int(attempt): _record(record) for attempt, record in dict(document["records"]).items()},
        end=end,
    )


def union(ledger: Ledger, others: Iterable[Ledger]) -> Ledger:
    """Return the union of copies; those of another launch are left out."""
    for other in others:
        if other.token == ledger.token:
            ledger = ledger.merge(other)
    return ledger


def _document(record: Record, *, full: bool) -> dict[str, Any]:
    document = {
        name: value
        for name, value in asdict(record).items()
        if value or (name == "step" and value is not None)
    }
    if "why" in document:
        document["why"] = document["why"][:_LONGEST_WHY]
        if not full:
            del document["why"]
    return document


def _record(document: Mapping[str, Any]) -> Record:
    kind = str(document["kind"])
    if kind not in KINDS:
        raise ValueError(f"unknown kind of record {kind!r}")
    return Record(
        kind=kind,
        why=str(document.get("why", "")),
        step=document.get("step"),
        killed=tuple(int(node) for node in document.get("killed", ())),
        unseen=tuple(int(node) for node in document.get("unseen", ())),
        port=bool(document.get("port", False)),
    )


def _order(record: Record) -> tuple[Any, ...]:
    """Order copies of a record; the first one stands. Of equal ones that with more text, for copies get shorter."""
    step = -1 if record.step is None else record.step
    return (
        KINDS.index(record.kind),
        record.port,
        -len(record.why),
        record.why,
        -step,
        _canonical(asdict(record)),
    )


def _canonical(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, sort_keys=True)


def _further(step: int | None, best: int | None) -> bool:
    return step is not None and (best is None or step > best)
