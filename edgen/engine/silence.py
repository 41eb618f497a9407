"""Whether a service has fallen silent: calls are out, and for too long none is answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edgen.config import Limits
from edgen.engine.line import Line
from edgen.engine.walk import GO_ON, clause
from edgen.errors import ProviderError
from edgen.limits import Admission

_LOOKS = 40  # in the time after which to give up
_OFTEN = 1.0  # seconds between two looks at most
START = 60.0  # seconds that a service is waited for that has not answered yet
_STALL = 5  # looks: what lies further apart was spent by this process, not by the service


class Silence:
    """Listens to each line by itself: one backend of two may be the dead one.

    One call that gets no answer may be its prompt's fault, and is the retry policy's business. So silence is
    evidence only where a call begun after the last answer has none and is not alone: another one was begun since
    then, too, or is still out from before. That other one is given the time of an attempt.

    Time counts while a line has calls in flight or waiting to be tried again, and nobody has asked us to
    wait: waiting for a turn, for the rates or for the budget is no silence of the service's.

    A service that is away (its circuit says so) is silent whoever waits. One that has never answered gets `START`
    seconds at most: more likely than a restart is an address that is wrong.
    """

    def __init__(self, lines: Mapping[str, Line], limits: Limits) -> None:
        self._give_up_after = limits.give_up_after
        self._attempt = min(limits.timeout, limits.give_up_after)  # seconds
        self.every = min(_OFTEN, limits.give_up_after / _LOOKS)  # seconds
        self._heard = {role: _Heard(line) for role, line in lines.items()}
        self._looked: float | None = None

    def look(self, now: float) -> ProviderError | None:
        """To be called every `every` seconds; `now` is any one clock's. The reason to give up, if there is one."""
        passed = 0.0 if self._looked is None else min(now - self._looked, self.every * _STALL)
        self._looked = now
        for role, heard in self._heard.items():
            # Rather a look early than one late.
            silent, several = (seconds + 2 * self.every for seconds in heard.silent(passed))
            admission = heard.line.admission
            if admission.away:
                patience = self.patience(admission)
                if admission.refused_for + 2 * self.every > patience:
                    made = _gone if admission.answered else _never_there
                    return made(role, heard.line, patience)
            elif silent > self._give_up_after and several > self._attempt:
                return _gone(role, heard.line, self._give_up_after)
        return None

    def patience(self, admission: Admission) -> float:
        """Seconds that a service may be away."""
        return self._give_up_after if admission.answered else min(START, self._give_up_after)

    def gone_away(self) -> Iterator[str]:
        """What to say of services that have gone away, each time once."""
        for role, heard in self._heard.items():
            away = heard.line.admission.away
            if away and not heard.told:
                yield _away(role, heard.line, self.patience(heard.line.admission))
            heard.told = away


class _Heard:
    """One line: its answers when last looked at, seconds of silence since they changed, and of these the seconds
    since it was more than one call's."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.told = False  # that it is away
        self._answers = line.answers
        self._silent = self._several = 0.0

    def silent(self, passed: float) -> tuple[float, float]:
        """The seconds of silence, and of several calls' silence, another `passed` later."""
        line = self.line
        if line.answers != self._answers:
            self._answers, self._silent, self._several = line.answers, 0.0, 0.0
        elif line.out and not line.admission.paused_for and not line.admission.away:
            self._silent += passed
            if line.begun > 1 or (line.begun and line.out > 1):
                self._several += passed
        return self._silent, self._several


def _gone(role: str, line: Line, seconds: float) -> ProviderError:
    waiting = line.out + line.admission.waiting if line.admission.away else line.out
    return ProviderError(
        f"{_which(role)}The service has answered nothing for {seconds:g} s, with "
        f"{waiting} {'call' if waiting == 1 else 'calls'} waiting for it."
        f"{_last(line)} The run stopped rather than wait for ever. If the service is only slow, raise "
        f"limits.give_up_after. {GO_ON}"
    )


def _never_there(role: str, line: Line, seconds: float) -> ProviderError:
    return ProviderError(
        f"{_which(role)}The service could not be reached for {seconds:g} s, and has not answered once.{_last(line)} "
        f"Start the server, or correct the address in the job; `edgen doctor JOB` tries it. {GO_ON}"
    )


def _which(role: str) -> str:
    return "" if role == "default" else f"Backend {role}: "


def _last(line: Line) -> str:
    return f" What came last was {clause(line.last_failure)}." if line.last_failure is not None else ""


def _away(role: str, line: Line, seconds: float) -> str:
    """What is said when a service goes away."""
    said = clause(line.last_failure) if line.last_failure is not None else "no connection"
    return (
        f"{_which(role)}The service is away ({said}). It is looked for again until it answers, for "
        f"{seconds:g} s at most."
    )
