"""One unit of work as a scheduler sees it: a generator to run, and what becomes of its result.

Conversations and comparisons are both tasks; a scheduler knows neither.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from edgen.config import CallSettings
from edgen.core.values import AnswerTime, Rejection, Reply, Request, Status, TaskId
from edgen.space.entries import is_forbidden


class AnsweringModel(msgspec.Struct, frozen=True):
    """The answering party: the backend's kind and the model's name."""

    backend: str
    model: str


class Spent(msgspec.Struct):
    """Sums over one task's calls, the answering parties, and the end of the last answer."""

    asks: int = 0  # answered calls
    prompt_tokens: int = 0  # of all calls
    completion_tokens: int = 0  # of all calls
    finish_reason: str = "stop"  # of the last answer
    key: bytes | None = None  # of the last request in the ledger; None before the first
    simulated: bool = False  # no model wrote at least one answer
    by_role: dict[str, AnsweringModel] = {}  # answering party of each role
    times: list[AnswerTime] = []  # of people's answers

    def add(self, reply: Reply, key: bytes, asked: Request, backend: str, model: str) -> None:
        """Count the answer to a request. `model` serves where the reply does not name its own."""
        self.asks += 1
        if reply.usage is not None:
            self.prompt_tokens += reply.usage.prompt_tokens
            self.completion_tokens += reply.usage.completion_tokens
        self.finish_reason = reply.finish_reason
        self.key = key
        self.simulated |= reply.simulated
        self.by_role[asked.role] = AnsweringModel(backend, _clean_model_name(reply.model or model))
        if (given := reply.given) is not None:
            place = asked.address
            self.times.append(
                AnswerTime(asked.role, place.step, place.attempt, *msgspec.structs.astuple(given))
            )


def _clean_model_name(name: str) -> str:
    """Return a model's name, which a service may choose freely, as one line without control characters."""
    if len(name) <= 200 and name.isprintable():
        return name.strip()
    return "".join(" " if is_forbidden(char) else char for char in name[:200]).strip()


class Settled(msgspec.Struct, frozen=True):
    """The end of a task: a record, or a reason for its absence. `beside`: further values to keep, as JSON, by
    name."""

    status: Status
    reason: str | None = None
    detail: str | None = None
    record: bytes | None = None
    beside: Mapping[str, bytes] = {}

    @classmethod
    def accepted(cls, record: bytes, beside: Mapping[str, bytes] | None = None) -> Settled:
        """Return the end with a result: `record` is kept, and so is `beside`."""
        return cls(Status.ACCEPTED, record=record, beside=beside or {})

    @classmethod
    def rejected(cls, rejection: Rejection) -> Settled:
        """Return the end of an answered task without a result."""
        return cls(Status.REJECTED, rejection.code, rejection.detail)


@dataclass(frozen=True, slots=True)
class Task:
    """`protocol` yields requests and returns a result; `settled` makes an outcome of that.

    `group` is the hash of the group that the split keeps on one side. `made_by` is the protocol's name, where
    a job names one.
    """

    protocol: Generator[Request, Reply, Any]
    group: int
    settled: Callable[[Any, Spent], Settled]
    made_by: str = ""
    check: Callable[[Any], Request] | None = None
    """Checks each request of a plugin's protocol."""


class Tasks(Protocol):
    """Source of a scheduler's tasks.

    `sharers`: the number of tasks that may make the same request, up to the address; 1 if none does.
    `useless_help`: advice if hardly any answer is usable; empty: the reasons suffice.
    """

    call_settings: CallSettings
    sharers: int = 1
    useless_help: str = ""

    def make_task(self, scenario: int, task: Any) -> Task:
        """Return the work on one task of a scenario."""
        ...

    def list_twins(self, scenario: int, task: Any) -> Iterable[TaskId]:
        """Return the other tasks of a scenario that may begin with the same question, each for an answer of
        its own."""
        return ()

    def make_fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """Return a name for everything that shapes the outcomes, with the backends' identities by role."""
        ...
