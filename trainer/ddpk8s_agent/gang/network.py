"""The thread that serves both machines: sockets, time, and nothing that could block.

The agent's main thread posts events and takes orders; torchrun, logs and disks are its business. Node 0's member
speaks to its coordinator without a socket, by the same messages.
"""

import queue
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.coordinator import Coordinator
from ddpk8s_agent.gang.dialer import Dialer
from ddpk8s_agent.gang.joining import State
from ddpk8s_agent.gang.judging import Phase
from ddpk8s_agent.gang.links import UPLINK, Links
from ddpk8s_agent.gang.member import Member
from ddpk8s_agent.gang.messages import Message
from ddpk8s_agent.gang.store import Store
from ddpk8s_agent.gang.timing import Timing
from ddpk8s_agent.gang.wire import BrokenLinkError

LOCAL = 0
"""The coordinator's number for the member on its own node."""
_LONGEST_TICK = 0.5
_FIRST_SAY = 2.0
_ALONE = (State.DIAL, State.JUDGED)
_ORDERS = (e.Arm, e.Start, e.Drain, e.Stop, e.Told, e.Exit)


@dataclass
class Network:
    """Runs the machines of this node.

    Attributes:
        member: This node's member.
        coordinator: The coordinator, on node 0.
        listener: Where it listens; None with a single node.
        address: Where the coordinator is, for the others.
        timing: The time-outs.
        store: The ledger's files.
        say: Tells people.
        alert: Called when there is an order for the main thread.
    """

    member: Member
    coordinator: Coordinator | None
    listener: socket.socket | None
    address: tuple[str, int]
    timing: Timing
    store: Store
    say: Callable[[str], None]
    alert: Callable[[], None] = lambda: None
    orders: "queue.SimpleQueue[e.Action]" = field(default_factory=queue.SimpleQueue)
    _events: "deque[tuple[object, e.Event]]" = field(default_factory=deque)
    _inbox: "queue.SimpleQueue[tuple[object, e.Event]]" = field(default_factory=queue.SimpleQueue)
    _closing: bool = False
    _say_unreachable_at: float | None = None

    def __post_init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._tick = min(_LONGEST_TICK, self.timing.heartbeat / 4)
        members = self.member.identity.nnodes if self.coordinator else 1
        self._links = Links(self._selector, self._got, self._broke, self.timing.heartbeat, members)
        self._look_at = time.monotonic() + self.timing.look
        self._dialer = Dialer(self.address, self.timing.connect, self._wake_up)
        self._wake, self._woken = socket.socketpair()
        for sock in (self._wake, self._woken):
            sock.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        if self.listener is not None:
            self.listener.setblocking(False)
            self._selector.register(self.listener, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._run, name="gang", daemon=True)
        self._thread.start()

    # --- for the main thread

    def post(self, event: e.Event) -> None:
        """Tell this node's member something."""
        self._post(self.member, event)

    def next(self, seconds: float) -> e.Action | None:
        """Return the next order, or None after so many seconds."""
        try:
            return self.orders.get(timeout=seconds) if seconds else self.orders.get_nowait()
        except queue.Empty:
            return None

    def close(self, seconds: float = 2.0) -> None:
        """Send what is queued, and end."""
        self._closing = True
        self._wake_up()
        self._thread.join(seconds)

    def _post(self, machine: object, event: e.Event) -> None:
        self._inbox.put((machine, event))
        self._wake_up()

    def _wake_up(self) -> None:
        with suppress(OSError):
            self._wake.send(b"x")

    # --- the thread

    def _run(self) -> None:
        try:
            while not self._closing or self._links.unsent or not self._inbox.empty():
                self._turn()
        except Exception as error:  # a bug of ours must end the agent, not leave it deaf
            self.orders.put(e.Exit(70, {"reason": "Bug", "message": f"{type(error).__name__}: {error}"}))
            raise
        finally:
            self._links.close()
            for each in (self.listener, self._wake, self._woken, self._selector):
                if each is not None:
                    each.close()

    def _turn(self) -> None:
        """One round: what came by socket, what the main thread posted, what time brought."""
        for key, _ in self._selector.select(self._dialer.seconds(time.monotonic(), self._tick)):
            if key.fileobj is self._woken:
                with suppress(OSError):
                    self._woken.recv(4096)
            elif key.fileobj is self.listener and self.listener is not None:
                self._links.accept(self.listener)
            else:
                self._links.serve(key.data)
        while not self._inbox.empty():
            self._events.append(self._inbox.get())
        self._take_dialed()
        self._links.drop_silent_strangers()
        self._look_at_volume()
        if self._dialer.due(time.monotonic()):
            self._dial()
        for machine in (self.coordinator, self.member):
            if machine is not None:
                self._events.append((machine, e.Tick()))
        self._work()
        self._links.watch_writers()

    def _work(self) -> None:
        """Give the machines their events; what they ask for may bring more."""
        while self._events:
            machine, event = self._events.popleft()
            now = time.monotonic()
            if machine is self.member:
                for action in self.member.handle(event, now):
                    self._do_for_member(action)
            elif self.coordinator is not None:
                for action in self.coordinator.handle(event, now):
                    self._do_for_coordinator(action)

    def _do_for_member(self, action: e.Action) -> None:
        if isinstance(action, e.Send):
            if self.coordinator is not None:
                self._events.append((self.coordinator, e.Received(action.message, LOCAL)))
            else:
                self._links.send(UPLINK, action.message)
        elif isinstance(action, e.Dial):
            self._links.drop(UPLINK)
            self._dialer.plan(time.monotonic() + action.after)
        elif isinstance(action, e.Remember):
            self.store.remember(action.ledger)
        elif isinstance(action, e.Say):
            self.say(action.text)
        elif isinstance(action, _ORDERS):
            self.orders.put(action)
            self.alert()

    def _do_for_coordinator(self, action: e.Action) -> None:
        if isinstance(action, e.Send):
            if action.conn == LOCAL:
                self._events.append((self.member, e.Received(action.message)))
            else:
                self._links.send(action.conn, action.message)
        elif isinstance(action, e.Hangup):
            if action.conn == LOCAL:
                self._events.append((self.member, e.Disconnected("it hung up")))
            else:
                self._links.drop(action.conn)
        elif isinstance(action, e.Commit):
            serial = action.serial
            self.store.commit(
                action.ledger, lambda written: self._post(self.coordinator, e.Committed(serial, written))
            )
        elif isinstance(action, e.Say):
            self.say(action.text)

    # --- connections

    def _got(self, conn: int, message: Message) -> None:
        machine = self.member if conn == UPLINK else self.coordinator
        self._events.append((machine, e.Received(message, conn)))

    def _broke(self, conn: int, error: BrokenLinkError) -> None:
        if conn == UPLINK:
            self._events.append((self.member, e.Disconnected(error.why, error.silent)))
        else:
            self._events.append((self.coordinator, e.Closed(conn, error.silent)))

    def _dial(self) -> None:
        if self.coordinator is not None:
            self._events.append((self.member, e.Connected()))
        else:
            self._dialer.dial()

    def _take_dialed(self) -> None:
        result = self._dialer.take()
        if isinstance(result, str):
            self._say_unreachable(result)
            self._events.append((self.member, e.Disconnected(result)))
        elif result is not None:
            self._say_unreachable_at = None
            self._links.connected(result)
            self._events.append((self.member, e.Connected()))

    def _look_at_volume(self) -> None:
        """Who waits may have missed that the job is over."""
        now, coordinator = time.monotonic(), self.coordinator
        waits = coordinator.phase is Phase.GATHER if coordinator else self.member.state in _ALONE
        if waits and now >= self._look_at:
            self._look_at = now + self.timing.look
            machine = coordinator or self.member
            self.store.look(lambda ledger: self._post(machine, e.Learned(ledger)))

    def _say_unreachable(self, why: str) -> None:
        """Say it now and then, but not if it only took the other agent a moment to start."""
        now = time.monotonic()
        if self._say_unreachable_at is None:
            self._say_unreachable_at = now + _FIRST_SAY
        if now >= self._say_unreachable_at:
            self._say_unreachable_at = now + self.timing.say_waiting
            self.say(f"cannot reach the agent of node 0 yet, trying again: {why}")
