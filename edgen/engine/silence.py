"""Whether a service has fallen silent: calls are out, and for too long none is answered."""

from __future__ import annotations

from collections.abc import Mapping

from edgen.engine.line import Line
from edgen.engine.walk import GO_ON, clause
from edgen.errors import ProviderError

_LOOKS = 40  # in the time after which to give up
_OFTEN = 1.0  # seconds between two looks at most
_STALL = 5  # looks: what lies further apart was spent by this process, not by the service


class Silence:
    """Listens to each line by itself: one backend of two may be the dead one.

    Time counts while a line has calls in flight or waiting to be tried again, and nobody has asked us to
    wait: waiting for a turn, for the rates or for the budget is no silence of the service's.
    """

    def __init__(self, lines: Mapping[str, Line], give_up_after: float) -> None:
        self.every = min(_OFTEN, give_up_after / _LOOKS)  # seconds
        self._give_up_after = give_up_after
        self._heard = {role: _Heard(line) for role, line in lines.items()}
        self._looked: float | None = None

    def look(self, now: float) -> ProviderError | None:
        """To be called every `every` seconds; `now` is any one clock's. The reason to give up, if there is one."""
        passed = 0.0 if self._looked is None else min(now - self._looked, self.every * _STALL)
        self._looked = now
        for role, heard in self._heard.items():
            # Rather a look early than one late.
            if heard.silent(passed) + 2 * self.every > self._give_up_after:
                return _gone(role, heard.line, self._give_up_after)
        return None


class _Heard:
    """One line: its answers when last looked at, and seconds of silence since they changed."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self._answers = line.answers
        self._silent = 0.0

    def silent(self, passed: float) -> float:
        """The seconds of silence, another `passed` later."""
        if self.line.answers != self._answers:
            self._answers, self._silent = self.line.answers, 0.0
        elif self.line.out and not self.line.admission.paused_for:
            self._silent += passed
        return self._silent


def _gone(role: str, line: Line, seconds: float) -> ProviderError:
    which = "" if role == "default" else f"Backend {role}: "
    last = f" What came last was {clause(line.last_failure)}." if line.last_failure is not None else ""
    return ProviderError(
        f"{which}The service has answered nothing for {seconds:g} s, with {line.out} calls waiting for it."
        f"{last} The run stopped rather than wait for ever. If the service is only slow, raise "
        f"limits.give_up_after. {GO_ON}"
    )
