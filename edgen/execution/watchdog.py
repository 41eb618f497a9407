"""Detection of silent services: calls are running, and none has been answered for too long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edgen.config import Limits
from edgen.core.errors import FailuresError, ProviderError
from edgen.execution.client.admission import Admission
from edgen.execution.client.model_client import ModelClient
from edgen.execution.rollout import GO_ON, describe_failure, make_backend_prefix

_LOOKS = 40  # checks within the time after which to give up
_OFTEN = 1.0  # maximum seconds between two checks
START = 60.0  # seconds to wait for a service that has not answered yet
_STALL = 5  # checks: a longer gap was spent by this process, not by the service


class Watchdog:
    """A watcher of each client separately: one of two backends may be dead.

    One unanswered call may be its prompt's fault, which the retry policy handles. So silence counts only if a
    call begun after the last answer has none and is not alone: another one was begun since then, too, or is
    still running from before. That other one is given the time of an attempt.

    Time counts while a client has calls in flight or waiting for a retry, unless the service asked to wait:
    waits for a turn, the rates or the budget are not the service's silence.

    An unreachable service (by its circuit) is silent regardless of waiting calls. One that has never answered
    gets at most `START` seconds: a wrong address is more likely than a restart.
    """

    def __init__(self, clients: Mapping[str, ModelClient], limits: Limits) -> None:
        self._give_up_after = limits.give_up_after
        self._attempt = min(limits.timeout, limits.give_up_after)  # seconds
        self.every = min(_OFTEN, limits.give_up_after / _LOOKS)  # seconds
        self._heard = {role: _ClientSilence(client) for role, client in clients.items()}
        self._looked: float | None = None

    def look(self, now: float) -> ProviderError | None:
        """Check the clients; call this every `every` seconds, with `now` of any one clock. Return the reason
        to give up, if there is one."""
        passed = 0.0 if self._looked is None else min(now - self._looked, self.every * _STALL)
        self._looked = now
        for role, heard in self._heard.items():
            # Rather a check too early than one too late.
            silent, several = (seconds + 2 * self.every for seconds in heard.measure_silence(passed))
            admission = heard.client.admission
            if admission.away:
                patience = self.find_patience(admission)
                if admission.refused_for + 2 * self.every > patience:
                    error = _make_silence_error if admission.answered else _make_unreachable_error
                    return error(role, heard.client, patience)
            elif silent > self._give_up_after and several > self._attempt:
                return _make_silence_error(role, heard.client, self._give_up_after)
        return None

    def find_patience(self, admission: Admission) -> float:
        """Return the seconds that a service may be unreachable."""
        return self._give_up_after if admission.answered else min(START, self._give_up_after)

    def list_unreachable(self) -> Iterator[str]:
        """Yield notes on services that have become unreachable, once each."""
        for role, heard in self._heard.items():
            away = heard.client.admission.away
            if away and not heard.told:
                yield _write_away_note(role, heard.client, self.find_patience(heard.client.admission))
            heard.told = away


class _ClientSilence:
    """A client's state: its answers and signs of work at the last check, seconds of silence since they
    changed, and of these the seconds since it concerned more than one call."""

    def __init__(self, client: ModelClient) -> None:
        self.client = client
        self.told = False  # whether its absence was reported
        self._signs = client.signs
        self._silent = self._several = 0.0

    def measure_silence(self, passed: float) -> tuple[float, float]:
        """Return the seconds of silence, and of several calls' silence, after another `passed` seconds."""
        client = self.client
        if (signs := client.signs) != self._signs:
            self._signs, self._silent, self._several = signs, 0.0, 0.0
        elif client.out and not client.admission.paused_for and not client.admission.away:
            self._silent += passed
            if client.begun > 1 or (client.begun and client.out > 1):
                self._several += passed
        return self._silent, self._several


def _make_silence_error(role: str, client: ModelClient, seconds: float) -> ProviderError:
    waiting = client.out + client.admission.waiting if client.admission.away else client.out
    return FailuresError(
        f"{make_backend_prefix(role)}The service has answered nothing for {seconds:g} s, with "
        f"{waiting} {'call' if waiting == 1 else 'calls'} waiting for it."
        f"{_describe_last_failure(client)} The run stopped rather than wait for ever. If the service is "
        f"only slow, raise limits.give_up_after. {GO_ON}"
    )


def _make_unreachable_error(role: str, client: ModelClient, seconds: float) -> ProviderError:
    return FailuresError(
        f"{make_backend_prefix(role)}The service could not be reached for {seconds:g} s, and has not answered "
        f"once.{_describe_last_failure(client)} "
        f"Start the server, or correct the address in the job; `edgen doctor JOB` tries it. {GO_ON}"
    )


def _describe_last_failure(client: ModelClient) -> str:
    failure = client.last_failure
    return "" if failure is None else f" What came last was {describe_failure(failure)}."


def _write_away_note(role: str, client: ModelClient, seconds: float) -> str:
    """Return the note on a service that became unreachable."""
    said = describe_failure(client.last_failure) if client.last_failure is not None else "no connection"
    return (
        f"{make_backend_prefix(role)}The service is away ({said}). edgen retries until it answers, for "
        f"{seconds:g} s at most."
    )
