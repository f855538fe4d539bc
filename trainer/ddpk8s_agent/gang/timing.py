"""Every time-out of the gang, in seconds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Time-outs; the defaults are the protocol's, tests make them shorter.

    Attributes:
        heartbeat: Between two signs of life, both ways.
        peer_deadline: Silence after which a peer is lost. Six heartbeats may be missed: a throttled pod that
            imports torch starves Python's threads for seconds.
        eof_is_death: An end of the connection so soon after a sign of life means that the peer was killed.
        connect: For one attempt to connect; an address that is no longer true swallows packets.
        dial: Pauses between attempts to connect, from the first to the longest.
        duplicate: How long an older holder of a node rank may take to answer a challenge.
        duplicate_retry: After which a member whose node rank is taken asks again.
        margin: For the clocks and delays of a silent node, after which it has surely ended its processes.
        visible: For what node 0 wrote to the checkpoint directory to be seen by the others.
        look: Between two looks at the shared volume, of those who wait: the job may be over.
        arm: For all members to be ready; memory of a GPU comes back after tens of seconds.
        teardown: Between SIGTERM and SIGKILL after a failure: a checkpoint may still be written.
        done: For all evidence after the end of an attempt: teardown, 30 s for unkillable processes, margin.
        acknowledge: For all members to confirm a verdict.
        finish: For the last rank to leave after the first; more than torchrun's own barrier of 300 s.
        commit: For the ledger to reach the shared volume; then the members' memory has to do.
        say_waiting: Between two lines on who is missing.
        start_deadline: For a gang to be complete.
        hang: Without progress of any rank; None never ends an attempt for that.
        grace: For workers to stop after SIGTERM.
    """

    heartbeat: float = 2.0
    peer_deadline: float = 12.0
    eof_is_death: float = 3.0
    connect: float = 3.0
    dial: tuple[float, float] = (0.2, 5.0)
    duplicate: float = 3.0
    duplicate_retry: float = 5.0
    margin: float = 5.0
    visible: float = 20.0
    look: float = 10.0
    arm: float = 60.0
    teardown: float = 10.0
    done: float = 45.0
    acknowledge: float = 30.0
    finish: float = 330.0
    commit: float = 10.0
    say_waiting: float = 10.0
    start_deadline: float = 900.0
    hang: float | None = None
    grace: float = 120.0

    @property
    def fence(self) -> float:
        """After a silent member is given up, until its processes are surely gone by its own doing.

        It may have heard of us until now, and gives up in its turn; then it ends them, with a margin.
        """
        return self.peer_deadline + self.teardown + self.margin
