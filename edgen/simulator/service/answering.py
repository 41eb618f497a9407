"""Answers to served calls, online or in a batch: faults and replies.

Attempts and answers of a request are counted here, for both ways together.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from edgen.core.values import Reply
from edgen.simulator import faults as fault
from edgen.simulator.prompts.prompt_scene import SceneFinder
from edgen.simulator.service.dialect import WireCall
from edgen.simulator.text import make_request_key, respond

_REMEMBERED = 100_000  # requests whose repetitions are counted


@dataclass(slots=True)
class _Tally:
    """Numbers of attempts and answers of a request."""

    tried: int = 0
    answered: int = 0


class SimulatedModel:
    """The simulated model of a server. Thread-safe."""

    def __init__(self, faults: fault.Faults, salt: int, scenes: SceneFinder | None = None) -> None:
        self.faults = faults
        self._scenes = scenes or SceneFinder()
        self._salt = salt
        self._tallies: OrderedDict[bytes, _Tally] = OrderedDict()
        self._lock = threading.Lock()

    def make_key(self, call: WireCall) -> bytes:
        """Return 16 bytes that identify the request."""
        return make_request_key(call.messages, -1 if call.seed is None else call.seed, self._salt)

    def choose_fault(self, key: bytes) -> fault.Fault | None:
        """Count an attempt of the request. Return its transport fault, if any."""
        with self._lock:
            tally = self._find_tally(key)
            tally.tried += 1
            return fault.choose_transport_fault(self.faults, key, tally.tried - 1)

    def make_replies(self, call: WireCall, key: bytes) -> list[Reply]:
        """Return one reply for each choice of the call, and count the request as answered."""
        with self._lock:
            tally = self._find_tally(key)
            variation = tally.answered if call.temperature != 0 else 0
            tally.answered += 1
        seed = variation if call.seed is None else call.seed
        # Further choices get seeds that no caller sends.
        return [self._make_reply(call, seed + (i << 64)) for i in range(call.choices)]

    def _make_reply(self, call: WireCall, seed: int) -> Reply:
        return respond(
            call.messages,
            seed=seed,
            max_tokens=call.max_tokens,
            faults=self.faults,
            salt=self._salt,
            stop=call.stop,
            json_mode=call.json_mode or call.schema is not None,
            schema=call.schema,
            find_scene=self._scenes.find,
            top=call.top_logprobs,
        )

    def _find_tally(self, key: bytes) -> _Tally:
        """Return the request's tally. Evicts the least recently used tally if needed."""
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = _Tally()
            if len(self._tallies) > _REMEMBERED:
                self._tallies.popitem(last=False)
        else:
            self._tallies.move_to_end(key)
        return tally
