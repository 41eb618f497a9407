"""Every error edgen raises on purpose, and the exit code each one ends a command with.

* EdgenError                 a sentence for a person: what is wrong, where, what to do
  x InputError          (2)  something the user wrote or named
    + UsageError             a command line that does not fit
    + JobError · SpaceError · MachineError · TemplateError · DataError    a file, with all its problems
    + RunError               a run folder or ledger that cannot be used
      - DamagedError         a ledger in which something is not as edgen writes it
  x ShortError          (3)  finished, but less than asked for
  x StoppedError        (4)  stopped by a budget, a deadline or a full disk; resumable
  x HandedOver          (0)  request files are written for somebody to send; resumable
  x ProviderError       (5)  authentication, quota, or a service that only refuses; resumable
  x LockedError         (6)  another process holds the run
  x SignalError (129/130/143) a signal, after a clean flush; resumable
* CallError                  one attempt at one model call went wrong; `retry` decides, the engine records

An EdgenError's text never holds a key. CallError never reaches a person unworded: the engine turns
it into an outcome (`failed`, with its kind) or into a ProviderError.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

_MOST_PROBLEMS = 50  # of a file of lines that are told; the others are counted


class EdgenError(Exception):
    """A sentence or two for a person. `exit_code` is what the command ends with."""

    exit_code = 1


class InputError(EdgenError):
    """Something that the user wrote or named cannot be used."""

    exit_code = 2


class UsageError(InputError):
    """A command line whose words do not fit together."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a file: `path` like `$.limits.in_flight`, `message` a clause about it."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class FileError(InputError):
    """A file that cannot be used, with every problem found in it. `source` names the file as the user named it;
    `problems` is empty when one sentence says it all."""

    what = "file"
    most_shown = 100  # problems; a file made by a program can have one on every line

    def __init__(self, source: str, summary: str, problems: Sequence[Problem] = ()) -> None:
        self.source = source
        self.summary = summary
        self.problems = tuple(problems)
        super().__init__(source, summary, self.problems)

    @classmethod
    def of(cls, source: str, problems: Sequence[Problem]) -> Self:
        """An error about these problems, which its summary counts."""
        return cls(source, f"{len(problems)} problem{'s' if len(problems) > 1 else ''}:", problems)

    def __str__(self) -> str:
        lines = [f"{self.what} {self.source}: {self.summary}"]
        lines += [f"  {problem}" for problem in self.problems[: self.most_shown]]
        if (more := len(self.problems) - self.most_shown) > 0:
            lines.append(f"  … and {more:,} more")
        return "\n".join(lines)


class JobError(FileError):
    """A job file (or a `--set` on top of it) that cannot be used."""

    what = "job"


class SpaceError(FileError):
    """A preference space file that cannot be used."""

    what = "space"


class MachineError(FileError):
    """A folder of a state machine that cannot be used."""

    what = "machine"


class TemplateError(FileError):
    """A prompt template that cannot be read, compiled or rendered."""

    what = "template"


class DataError(FileError):
    """A shard, an ED file or a reply file that cannot be read."""

    what = "data"


def refuse_lines(source: str, what: str, problems: Sequence[tuple[int, str]]) -> None:
    """Raise DataError where a file of lines has problems: (number of the line, what is wrong)."""
    if not problems:
        return
    told = [Problem(f"line {number}", message) for number, message in problems[:_MOST_PROBLEMS]]
    if more := len(problems) - len(told):
        told.append(Problem("further lines", f"{more:,} more problems"))
    many = "s" if len(problems) > 1 else ""
    raise DataError(source, f"{len(problems):,} problem{many} in this {what}:", told)


class RunError(InputError):
    """A run folder or its ledger cannot be used as it is; nothing in it was changed."""


class DamagedError(RunError):
    """A ledger holds what edgen does not write there: bits that were flipped, or somebody else's hand."""


class ShortError(EdgenError):
    """Everything planned was tried, and less was accepted than asked for."""

    exit_code = 3


class StoppedError(EdgenError):
    """The run stopped on purpose before its end and goes on when started again."""

    exit_code = 4


class HandedOver(EdgenError):  # noqa: N818 - it says what happened, and is no fault
    """What was asked for is done, and the rest is somebody else's to do; resumable."""

    exit_code = 0


class ProviderError(EdgenError):
    """The service refuses in a way that waiting does not mend."""

    exit_code = 5


class LockedError(EdgenError):
    """Another process holds the run."""

    exit_code = 6


class SignalError(EdgenError):
    """A signal ended the run after everything answered was stored."""

    def __init__(self, signal_number: int, message: str) -> None:
        self.exit_code = 128 + signal_number
        super().__init__(message)


class FailureKind(enum.StrEnum):
    """What went wrong with one attempt, whoever the vendor is."""

    RATE_LIMIT = "rate_limit"  # 429, come back later
    OVERLOADED = "overloaded"  # 503, 529: the service says it is full
    SERVER_ERROR = "server_error"  # any other 5xx
    TIMEOUT = "timeout"  # no answer in time, 408, 504
    CONNECTION = "connection"  # refused, reset, no such host, TLS
    BAD_RESPONSE = "bad_response"  # 200, but not what the format promises
    BAD_OUTPUT = "bad_output"  # 500: the service cannot read what its own model wrote
    AUTHENTICATION = "authentication"  # 401, or a key that is missing or malformed
    PERMISSION = "permission"  # 403
    QUOTA = "quota"  # paid-for quota used up, billing
    NOT_FOUND = "not_found"  # unknown model or path
    BAD_REQUEST = "bad_request"  # 400, 422: this request, as it stands, is never taken
    CONTEXT_OVERFLOW = "context_overflow"  # the prompt does not fit the model


# Waiting may mend it: tried again until attempts or time run out.
RETRYABLE = frozenset(
    {
        FailureKind.RATE_LIMIT,
        FailureKind.OVERLOADED,
        FailureKind.SERVER_ERROR,
        FailureKind.TIMEOUT,
        FailureKind.CONNECTION,
        FailureKind.BAD_RESPONSE,
        FailureKind.BAD_OUTPUT,
    }
)
_FEW = {FailureKind.BAD_OUTPUT: 2}  # attempts: the same prompt mostly meets the same end
# Waiting cannot mend it, and the next call would meet the same: the run stops.
FATAL = frozenset(
    {FailureKind.AUTHENTICATION, FailureKind.PERMISSION, FailureKind.QUOTA, FailureKind.NOT_FOUND}
)
# What is in neither concerns one request alone: its scenario fails and the run goes on.


def most_attempts(kind: FailureKind, attempts: int) -> int:
    """How many of so many attempts are worth making where the last one ended so."""
    return min(attempts, _FEW.get(kind, attempts)) if kind in RETRYABLE else 1


class CallError(Exception):
    """One attempt at one call went wrong.

    `kind` says what, `status` the HTTP status if there was one, `retry_after` the seconds the server asked to wait
    (None: it did not say). `message` is the server's own, shortened, without any key. `unsent`: the request surely
    never reached the service, so that it can cost nothing.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        unsent: bool = False,
    ) -> None:
        self.kind = kind
        self.message = message
        self.status = status
        self.retry_after = retry_after
        self.unsent = unsent
        super().__init__(kind, message, status, retry_after)

    def __str__(self) -> str:
        status = f" (HTTP {self.status})" if self.status is not None else ""
        return f"{self.kind}{status}: {self.message}"
