"""Whether a service has fallen silent: calls are out, and for too long none is answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edgen.config import Limits
from edgen.core.errors import ProviderError
from edgen.execution.client.admission import Admission
from edgen.execution.client.model_client import ModelClient
from edgen.execution.rollout import GO_ON, backend_prefix, describe_failure

_LOOKS = 40  # in the time after which to give up
_OFTEN = 1.0  # seconds between two looks at most
START = 60.0  # seconds that a service is waited for that has not answered yet
_STALL = 5  # looks: what lies further apart was spent by this process, not by the service


class Watchdog:
    """Listens to each client by itself: one backend of two may be the dead one.

    One call that gets no answer may be its prompt's fault, and is the retry policy's business. So silence is
    evidence only where a call begun after the last answer has none and is not alone: another one was begun since
    then, too, or is still out from before. That other one is given the time of an attempt.

    Time counts while a client has calls in flight or waiting to be tried again, and nobody has asked us to
    wait: waiting for a turn, for the rates or for the budget is no silence of the service's.

    A service that is away (its circuit says so) is silent whoever waits. One that has never answered gets `START`
    seconds at most: more likely than a restart is an address that is wrong.
    """

    def __init__(self, clients: Mapping[str, ModelClient], limits: Limits) -> None:
        self._give_up_after = limits.give_up_after
        self._attempt = min(limits.timeout, limits.give_up_after)  # seconds
        self.every = min(_OFTEN, limits.give_up_after / _LOOKS)  # seconds
        self._heard = {role: _ClientSilence(client) for role, client in clients.items()}
        self._looked: float | None = None

    def look(self, now: float) -> ProviderError | None:
        """To be called every `every` seconds; `now` is any one clock's. The reason to give up, if there is one."""
        passed = 0.0 if self._looked is None else min(now - self._looked, self.every * _STALL)
        self._looked = now
        for role, heard in self._heard.items():
            # Rather a look early than one late.
            silent, several = (seconds + 2 * self.every for seconds in heard.silent(passed))
            admission = heard.client.admission
            if admission.away:
                patience = self.patience(admission)
                if admission.refused_for + 2 * self.every > patience:
                    error = _silent_error if admission.answered else _unreachable_error
                    return error(role, heard.client, patience)
            elif silent > self._give_up_after and several > self._attempt:
                return _silent_error(role, heard.client, self._give_up_after)
        return None

    def patience(self, admission: Admission) -> float:
        """Seconds that a service may be away."""
        return self._give_up_after if admission.answered else min(START, self._give_up_after)

    def gone_away(self) -> Iterator[str]:
        """What to say of services that have gone away, each time once."""
        for role, heard in self._heard.items():
            away = heard.client.admission.away
            if away and not heard.told:
                yield _away_note(role, heard.client, self.patience(heard.client.admission))
            heard.told = away


class _ClientSilence:
    """One client: its answers when last looked at, seconds of silence since they changed, and of these the seconds
    since it was more than one call's."""

    def __init__(self, client: ModelClient) -> None:
        self.client = client
        self.told = False  # that it is away
        self._answers = client.answers
        self._silent = self._several = 0.0

    def silent(self, passed: float) -> tuple[float, float]:
        """The seconds of silence, and of several calls' silence, another `passed` later."""
        client = self.client
        if client.answers != self._answers:
            self._answers, self._silent, self._several = client.answers, 0.0, 0.0
        elif client.out and not client.admission.paused_for and not client.admission.away:
            self._silent += passed
            if client.begun > 1 or (client.begun and client.out > 1):
                self._several += passed
        return self._silent, self._several


def _silent_error(role: str, client: ModelClient, seconds: float) -> ProviderError:
    waiting = client.out + client.admission.waiting if client.admission.away else client.out
    return ProviderError(
        f"{backend_prefix(role)}The service has answered nothing for {seconds:g} s, with "
        f"{waiting} {'call' if waiting == 1 else 'calls'} waiting for it."
        f"{_last(client)} The run stopped rather than wait for ever. If the service is only slow, raise "
        f"limits.give_up_after. {GO_ON}"
    )


def _unreachable_error(role: str, client: ModelClient, seconds: float) -> ProviderError:
    return ProviderError(
        f"{backend_prefix(role)}The service could not be reached for {seconds:g} s, and has not answered once.{_last(client)} "
        f"Start the server, or correct the address in the job; `edgen doctor JOB` tries it. {GO_ON}"
    )


def _last(client: ModelClient) -> str:
    failure = client.last_failure
    return "" if failure is None else f" What came last was {describe_failure(failure)}."


def _away_note(role: str, client: ModelClient, seconds: float) -> str:
    """What is said when a service goes away."""
    said = describe_failure(client.last_failure) if client.last_failure is not None else "no connection"
    return (
        f"{backend_prefix(role)}The service is away ({said}). It is looked for again until it answers, for "
        f"{seconds:g} s at most."
    )
