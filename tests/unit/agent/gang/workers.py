"""Simulated attempts: workers that train, fail, hang, finish or stop, and the real evidence of it."""

from typing import TYPE_CHECKING, Any

from tests.unit.agent.gang.wires import TIMING

from ddpk8s_agent import wireform
from ddpk8s_agent.evidence import Evidence, HungRank, Launcher, RankEnd
from ddpk8s_agent.gang import events as e

if TYPE_CHECKING:
    from tests.unit.agent.gang.wires import Agent
    from tests.unit.agent.gang.world import World

OWN = ("Traceback (most recent call last):", '  File "t.py", line 1', "ValueError: boom")
VICTIM = (
    "Traceback (most recent call last):",
    '  File "t.py", line 1',
    "RuntimeError: Connection closed by peer",
)
FATES = ("success", "own", "killed", "mistake", "hang", "early", "port", "died", "exit hangs", "endless")


class Run:
    """One start of one attempt, over all nodes; trains while all are there."""

    def __init__(self, world: "World", attempt: int, rdzv: str) -> None:
        self.world, self.attempt, self.rdzv = world, attempt, rdzv
        self.here: dict[int, Workers] = {}
        self.trains_since: float | None = None
        self.hung_at: float | None = None
        self.base = world.saved_step
        self.done_at: float | None = None
        rng = world.rng
        names = [name for name in FATES if world.fates.get(name)]
        weights = [world.fates[name] for name in names]
        self.fate = rng.choices(names, weights)[0] if names else "success"
        if world.healthy and rng.random() < 0.9:
            self.fate = "success"
        self.agreed = rng.random() < 0.5
        self.stopped_at: float | None = None

    def join(self, workers: "Workers") -> None:
        world = self.world
        self.here[workers.agent.node] = workers
        if self.fate == "port" and workers.agent.node == 0:
            world.recorder.deserves(self.attempt, "port")
            world.at(0.3, workers.end_by_itself, "error", 0.0)
        if (
            len(self.here) == world.n
            and all(each.alive for each in self.here.values())
            and self.fate != "port"
        ):
            self.trains_since = world.now
            world.at(world.rng.random() * (4 if world.rng.random() < 0.3 else 20), self.meet_fate)

    @property
    def step(self) -> int:
        if self.trains_since is None:
            return self.base
        end = self.world.now
        for stop in (self.hung_at, self.done_at):
            end = end if stop is None else min(end, stop)
        return self.base + int(2 * max(0.0, end - self.trains_since))

    def meet_fate(self) -> None:
        world, rng = self.world, self.world.rng
        alive = [each for each in self.here.values() if each.running]
        if len(alive) < world.n or self.done_at is not None or self.fate == "endless":
            return
        world.note(lambda: f"attempt {self.attempt} meets its fate: {self.fate}")
        self.save()
        if self.fate in ("success", "exit hangs", "endless"):
            self.done_at = world.now
            world.recorder.finished = True
            for each in alive:
                each.result = {"step": self.step, "checkpoint": "/c"}
            late = rng.choice(alive) if self.fate == "exit hangs" else None
            if late:
                world.recorder.deserves(self.attempt, self.fate)
            for each in alive:
                if each is not late:
                    world.at(rng.random(), each.end_by_itself, "finished", 0.0)
            return
        world.recorder.deserves(self.attempt, self.fate, stopped=self.stopped_at)
        culprit = rng.choice(alive)
        if self.fate == "hang":
            self.hung_at = world.now
            culprit.stopped = rng.random() < 0.5
        elif self.fate == "died":
            culprit.end_by_itself("died", 0.1)
        else:
            codes = {"own": 1, "killed": -9, "mistake": 78, "early": 0}
            culprit.fail(codes[self.fate], OWN if self.fate in ("own", "mistake") else ())
            self.shock(culprit)

    def shock(self, gone: "Workers") -> None:
        """Peers notice that one is gone, or wait for it without end."""
        for each in self.here.values():
            if each is not gone and each.running and self.world.rng.random() < 0.7:
                self.world.at(self.world.rng.random(), each.lose_peer)

    def save(self) -> None:
        self.world.saved_step = max(self.world.saved_step, self.step - self.step % 5)


class Workers:
    """The processes of one start on one node."""

    def __init__(self, world: "World", agent: "Agent", run: Run) -> None:
        self.world, self.agent, self.run = world, agent, run
        self.alive = self.running = True
        self.launcher: Launcher = "stopped"
        self.drained = ""
        self.ends: list[RankEnd] = []
        self.result: dict[str, Any] = {}
        self.saved: dict[str, Any] = {}
        self.stopped = False
        self.leaving = False

    @property
    def ranks(self) -> tuple[int, int]:
        return 2 * self.agent.node, 2 * self.agent.node + 1

    def beats(self) -> tuple[tuple[int, int | None, float, bool], ...]:
        run, now = self.run, self.world.now
        since = run.hung_at if run.hung_at is not None else run.done_at if run.done_at is not None else now
        if run.trains_since is None:
            since = now
        return tuple((rank, run.step, max(0.0, now - since), True) for rank in self.ranks)

    def vanish(self) -> None:
        """Gone with the agent."""
        self.alive = self.running = False
        self.run.shock(self)

    def fail(self, code: int, log: tuple[str, ...]) -> None:
        if not self.running:
            return
        self.running = False
        self.launcher = "failed"
        culprit = self.ranks[self.world.rng.randrange(2)]
        if code:
            self.ends.append(RankEnd(culprit, code, 100 + culprit, log=log))
        other = self.ranks[0] if culprit == self.ranks[1] else self.ranks[1]
        self.ends.append(
            RankEnd(other, -15 if code else 1, 100 + other, closed=bool(code), log=() if code else VICTIM)
        )
        self.world.at(0.1, self._suspect)

    def lose_peer(self) -> None:
        if self.running and self.run.done_at is None:
            self.fail(1, VICTIM)

    def _suspect(self) -> None:
        if self.alive:
            self.world.post(self.agent, self.agent.member, e.Suspected("a rank failed"))
            self.leave_after(0.2 + 2 * self.world.rng.random())

    def end_by_itself(self, launcher: Launcher, delay: float) -> None:
        if not self.running:
            return
        self.running = False
        self.launcher = launcher
        self.world.at(delay, self.ended)
        if launcher != "finished":
            self.run.shock(self)

    def drain(self, why: str, grace: float) -> None:
        if self.running:
            self.running = False
            self.drained = why
            self.launcher = "failed"
            self.ends = [RankEnd(rank, -15, 100 + rank, closed=True) for rank in self.ranks]
            self.run.shock(self)
        slow, rng = self.world.rng.random(), self.world.rng
        delay = 0.1 + rng.random() * min(grace, 1.5)
        if slow < (0.8 if self.agent.inc in self.world.blocked else 0.2):
            delay = grace + 0.5
        elif slow < self.world.fates.get("unkillable", 0.0):
            delay = grace + 20.0
        self.leave_after(min(delay, grace + 1.0) if not self.world.clean else delay)

    def stop(self) -> None:
        run = self.run
        run.stopped_at = self.world.now if run.stopped_at is None else run.stopped_at
        delay = 0.2 + self.world.rng.random() * TIMING.grace * 0.7
        together = list(run.here.values()) if run.agreed else [self]
        for each in together:
            self.world.at(delay + self.world.rng.random() * 0.2, each.obey)

    def obey(self) -> None:
        if not self.running or self.run.done_at is not None:
            return
        self.run.save()
        self.running = False
        self.launcher = "failed"
        self.saved = {"step": self.run.step, "checkpoint": "/c"}
        self.ends = [RankEnd(rank, 143, 100 + rank) for rank in self.ranks]
        self.world.at(0.1, self._suspect)
        if not self.run.agreed:
            self.run.shock(self)

    def leave_after(self, delay: float) -> None:
        if not self.leaving:
            self.leaving = True
            self.world.at(delay, self.ended)

    def ended(self) -> None:
        if not self.alive:
            return
        self.alive = self.running = False
        hung: tuple[HungRank, ...] = ()
        if self.drained == "hang":
            hung = tuple(
                HungRank(rank, self.run.step, 9.0, stopped=self.stopped, waits=not self.stopped)
                for rank in self.ranks
            )
        evidence = Evidence(
            self.launcher,
            0 if self.launcher == "finished" else 1,
            self.ranks,
            tuple(self.ends),
            launcher_message="EADDRINUSE" if self.launcher == "error" else "",
            stop_requested=self.agent.asked,
            drained=self.drained,
            step=self.run.step or None,
            seconds=10.0,
            finished=self.result,
            stopped=self.saved,
            hung=hung,
        )
        document = wireform.to_document(evidence)
        self.world.post(self.agent, self.agent.member, e.Ended(self.launcher == "finished", document))
