"""One unit of work as a scheduler sees it: a generator to run, and what becomes of its result.

Conversations and comparisons are both tasks; a scheduler knows neither.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from edgen.config import CallSettings
from edgen.core.values import Rejection, Reply, Request, Status, TaskId
from edgen.space.text_rules import is_forbidden


class Answered(msgspec.Struct, frozen=True):
    """Who answered: the backend's kind and the model's name."""

    backend: str
    model: str


class Spent(msgspec.Struct):
    """What one task's calls added up to, who answered, and how the last answer ended."""

    asks: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reason: str = "stop"
    key: bytes | None = None
    simulated: bool = False
    by_role: dict[str, Answered] = {}

    def add(self, reply: Reply, key: bytes, role: str, backend: str, model: str) -> None:
        """Count an answer. `model` serves where the reply does not name its own."""
        self.asks += 1
        if reply.usage is not None:
            self.prompt_tokens += reply.usage.prompt_tokens
            self.completion_tokens += reply.usage.completion_tokens
        self.finish_reason = reply.finish_reason
        self.key = key
        self.simulated |= reply.simulated
        self.by_role[role] = Answered(backend, _one_line(reply.model or model))


def _one_line(name: str) -> str:
    """A model's name, which a service may choose as it likes, as one line without controls."""
    if len(name) <= 200 and name.isprintable():
        return name.strip()
    return "".join(" " if is_forbidden(char) else char for char in name[:200]).strip()


class Settled(msgspec.Struct, frozen=True):
    """How a task ended: a record, or a reason why there is none. `beside`: what else is kept of it, as JSON,
    by names."""

    status: Status
    reason: str | None = None
    detail: str | None = None
    record: bytes | None = None
    beside: Mapping[str, bytes] = {}

    @classmethod
    def accepted(cls, record: bytes, beside: Mapping[str, bytes] | None = None) -> Settled:
        """It came to something: `record` is kept, and what is `beside` it."""
        return cls(Status.ACCEPTED, record=record, beside=beside or {})

    @classmethod
    def rejected(cls, rejection: Rejection) -> Settled:
        """The model answered, and it came to nothing."""
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


class Tasks(Protocol):
    """Where a scheduler's tasks come from. `sharers`: how many tasks may ask the same request, to the
    address; 1 where none does. `useless_help`: what a person can do where hardly any answer is usable; empty:
    the reasons tell."""

    call_settings: CallSettings
    sharers: int = 1
    useless_help: str = ""

    def task(self, scenario: int, task: Any) -> Task:
        """The work on one task of a scenario."""
        ...

    def twins(self, scenario: int, task: Any) -> Iterable[TaskId]:
        """The other tasks of a scenario that may begin with the same question, each for an answer of its
        own."""
        return ()

    def fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """A name for everything that shapes the outcomes, the backends' identities by role included."""
        ...
