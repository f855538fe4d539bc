"""The machine of every agent: from dialing the coordinator to leaving with its verdict.

    DIAL ---- WELCOME ----> WAIT -- PREPARE --> ARM -- Armed, READY --> READY -- START --> RUN
     ^                       ^  ^----- problem, NOTREADY ---'             |                |
     |                       '------------- PREPARE again ----------------'                |
     |                                                 END, or the coordinator is lost ----'---> DRAIN
     |                                                                                     |       |
     '-- coordinator lost, evidence kept -- JUDGED <---- DONE -------- processes gone -----'-------'
                                              '-- VERDICT, ACK --> WAIT or GONE

A stop in DIAL, WAIT, ARM and READY leaves at once; in RUN the workers are asked to stop, in order, and the agent
leaves when they are gone.
"""

from collections.abc import Callable
from typing import Any

from ddpk8s_agent import exitcodes
from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.joining import Joining, State
from ddpk8s_agent.gang.messages import Message

_AFTER_STOP = 5.0
"""How long an agent that is to stop waits for a verdict, once its processes are gone."""
_MISMATCHES = 3
"""So many heartbeats in a row that contradict our state mean that a message was lost."""
_RUNS = ("running", "ending")


class Member(Joining):
    """See the head of this file. `handle` is told what happened, and returns what is to be done."""

    def handle(self, event: e.Event, now: float) -> list[e.Action]:
        """Take an event in; `now` is in seconds, on any clock that only moves forward."""
        if self.state is State.GONE:
            return []
        self._now = now
        table: dict[type, Callable[[Any], list[e.Action]]] = {
            e.Connected: self._on_connected,
            e.Disconnected: self._on_disconnected,
            e.Received: lambda event: self._on_message(event.message),
            e.Armed: self._on_armed,
            e.Suspected: self._on_suspected,
            e.Ended: self._on_ended,
            e.StopAsked: self._on_stop,
            e.Beats: self._on_beats,
            e.Learned: self._on_learned,
            e.Tick: lambda _event: self._on_tick(),
        }
        handler = table.get(type(event))
        return handler(event) if handler else []

    def _on_message(self, message: Message) -> list[e.Action]:
        if not self._connected:  # the last words of a connection that we gave up
            return []
        self._heard = self._now
        self._coordinator = str(message.get("inc") or self._coordinator)
        table: dict[str, Callable[[Message], list[e.Action]]] = {
            "WELCOME": self._on_welcome,
            "WAITING": self._on_waiting,
            "REJECT": self._on_reject,
            "PREPARE": self._on_prepare,
            "START": self._on_start,
            "HB": self._on_heartbeat,
            "END": self._on_end,
            "VERDICT": self._on_verdict,
            "CUT": lambda _message: self._lose("it hung up", silent=True),
            "LEAVE": self._on_leave,
            "EXIT": self._on_exit,
        }
        handler = table.get(message["type"])
        return handler(message) if handler else []

    def _on_disconnected(self, event: e.Disconnected) -> list[e.Action]:
        # An end that comes long after the last sign of life was not the end of the agent of node 0.
        late = self._now - self._heard >= self._timing.eof_is_death
        return self._lose(event.why, silent=event.silent or late)

    def _on_leave(self, _message: Message) -> list[e.Action]:
        if self.state in (State.RUN, State.DRAIN, State.JUDGED):
            self._left = self._attempt
        return self._lose("it was asked to stop")

    # --- gate and start

    def _on_prepare(self, message: Message) -> list[e.Action]:
        if self.state not in (State.WAIT, State.ARM, State.READY):
            return []
        if self.state is not State.WAIT and message["rdzv"] == self._rdzv:
            return []
        self.state = State.ARM
        self._attempt, self._rdzv = int(message["attempt"]), str(message["rdzv"])
        return [e.Arm(self._attempt, self._rdzv, int(message["port"]), str(message.get("mark", "")))]

    def _on_armed(self, event: e.Armed) -> list[e.Action]:
        if self.state is not State.ARM or event.rdzv != self._rdzv:
            return []
        if event.problem:
            self.state = State.WAIT
            mistake = {"mistake": True, "hint": event.hint} if event.mistake else {}
            return [self._send("NOTREADY", rdzv=event.rdzv, why=event.problem, **mistake)]
        self.state = State.READY
        self._prepared = self._attempt
        return [self._send("READY", rdzv=event.rdzv)]

    def _on_start(self, message: Message) -> list[e.Action]:
        if self.state is not State.READY or message.get("rdzv") != self._rdzv:
            return []
        self.state = State.RUN
        self._evidence, self._beats, self._fresh, self._step = None, (), False, None
        start = e.Start(self._attempt, self._rdzv, int(message["port"]))
        return [*self._learn(message), start]

    # --- the end of an attempt

    def _on_suspected(self, event: e.Suspected) -> list[e.Action]:
        if self.state is not State.RUN:
            return []
        self.state = State.DRAIN
        drain = e.Drain("failure", self._grace(self._timing.teardown))
        return [self._send("SUSPECT", hint=event.hint), drain]

    def _on_end(self, message: Message) -> list[e.Action]:
        if self.state is not State.RUN or message["attempt"] != self._attempt:
            return []
        self.state = State.DRAIN
        return [e.Drain(str(message["why"]), self._grace(float(message["grace"])))]

    def _on_ended(self, event: e.Ended) -> list[e.Action]:
        if self.state not in (State.RUN, State.DRAIN):
            return []
        self.state = State.JUDGED
        self._evidence, self._evidence_of, self._ok = event.evidence, self._attempt, event.ok
        self._beats = ()  # who is gone is not silent
        self._ended_at = self._now
        if self._ordered is not None:
            return self._exit(*self._ordered)
        if not self._connected:
            return []
        return [self._send("DONE", ok=event.ok, evidence=dict(event.evidence))]

    def _on_verdict(self, message: Message) -> list[e.Action]:
        attempt = int(message["attempt"])
        if self.state in (State.RUN, State.DRAIN):
            return []
        actions = [*self._learn(message), self._send("ACK", of=attempt)]
        if attempt <= self._told:  # said twice
            return actions
        self._told = attempt
        self._evidence, self._gate_since = None, self._now
        self.state = State.WAIT
        code = message.get("exit")
        told = e.Told(attempt, message["verdict"], float(message["pause"]), code, int(message["restarts"]))
        if code is None and self._stopping:
            code = exitcodes.STOPPED
        return [*actions, told, *(self._exit(int(code), {}) if code is not None else [])]

    def _on_exit(self, message: Message) -> list[e.Action]:
        self._ordered = (int(message["code"]), message.get("word") or {})
        if self.state is State.RUN:
            return self._hang_up("it has nothing more to do")
        return [] if self.state is State.DRAIN else self._exit(*self._ordered)

    # --- stops

    def _on_stop(self, _event: e.Event) -> list[e.Action]:
        if self._stopping:
            return []
        self._stopping = True
        self._stopped_at = self._ended_at = self._now
        if self.state is State.RUN:
            return [self._send("STOPPING"), e.Stop()]
        if self.state is State.DRAIN:
            return [self._send("STOPPING")] if self._connected else []
        return [] if self.state is State.JUDGED else self._leave()

    def _leave(self) -> list[e.Action]:
        word = {"reason": "Stopped", "message": "stopped as asked, nothing was running"}
        if self.state is State.JUDGED:
            word["message"] = "stopped as asked"
        said = [self._send("LEAVE")] if self._connected else []
        return [*said, *self._exit(exitcodes.STOPPED, word)]

    @property
    def _leave_at(self) -> float:
        """Until when a verdict is worth waiting for. Node 0 must still give it to the others."""
        soon = self._ended_at + _AFTER_STOP
        if self.identity.node != 0 or self.identity.nnodes == 1:
            return soon
        return max(soon, self._stopped_at + self._timing.grace - _AFTER_STOP)

    # --- time

    def _on_beats(self, event: e.Beats) -> list[e.Action]:
        self._beats = event.ranks
        return []

    def _on_learned(self, event: e.Learned) -> list[e.Action]:
        if self._connected:  # the coordinator knows better
            return []
        return [*self._learn({"ledger": event.ledger}), *self._exit_at_end()]

    def _on_heartbeat(self, message: Message) -> list[e.Action]:
        """Compare the coordinator's view with ours; what was lost on the way shows here."""
        if message.get("rdzv") == self._rdzv:
            self._step = message.get("step")
        runs = message.get("phase") in _RUNS and message.get("rdzv") == self._rdzv
        contradicts = (
            self.state is State.DIAL  # no WELCOME came
            or (self.state is State.RUN and not runs)
            or (self.state is State.JUDGED and not message.get("owed"))
        )
        self._mismatches = self._mismatches + 1 if contradicts else 0
        if self._mismatches < _MISMATCHES:
            return []
        return self._hang_up("it knows nothing of this attempt")

    def _on_tick(self) -> list[e.Action]:
        timing = self._timing
        if self._stopping and self.state is State.JUDGED and self._now > self._leave_at:
            return self._leave()
        waits = self.state in (State.DIAL, State.WAIT) or (self.state is State.JUDGED and not self._connected)
        if waits and self._now - self._gate_since > timing.start_deadline + timing.arm:
            message = f"node 0 could not be reached, or did not start, within {timing.start_deadline:.0f} s"
            message += f" ({self._problem})" if self._problem and not self._connected else ""
            return self._exit(exitcodes.FAILED, {"reason": "StartDeadline", "message": message})
        if not self._connected:
            return self._exit_at_end() if self.state is State.DIAL else []
        if self._now - self._heard > timing.peer_deadline:
            return self._hang_up(f"silent for {timing.peer_deadline:.0f} s")
        if self._now - self._sent >= timing.heartbeat:
            return [self._send("HB", state=self.state.value, rdzv=self._rdzv, ranks=list(self._beats))]
        return []
