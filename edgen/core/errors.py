"""Every error that edgen raises on purpose, with the exit code of the command.

* EdgenError                 a sentence for a person: what is wrong, where, what to do
  x InputError          (2)  something the user wrote or named
    + UsageError             a command line that does not fit
    + JobError · SpaceError · TemplateError · DataError    a file, with all its problems
    + RunError               a run folder or ledger that cannot be used
      - DamagedError         a ledger or another file of a run that is not as edgen wrote it
  x ShortError          (3)  finished, but less than asked for
  x UselessError        (3)  stopped early: hardly any answer is usable; resumable
  x StoppedError        (4)  stopped by a budget, a deadline or a full disk; resumable
  x HandedOver          (0)  request files are written for somebody to send; resumable
  x ProviderError       (5)  authentication, quota, or a service that only refuses; resumable
  x LockedError         (6)  another process holds the run
  x SignalError (129/130/143) a signal, after a clean flush; resumable
* CallError                  one attempt at one model call went wrong; `retry` decides, the engine records

An EdgenError's text never holds a key. CallError never reaches a person: the engine turns it into an outcome
(`failed`, with its kind) or into a ProviderError.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from edgen.core.text import limit_length

_MOST_PROBLEMS = 50  # maximum listed problems of a file of lines; the others are counted


class EdgenError(Exception):
    """A sentence or two for a person. `exit_code` is the command's; `reason` is one word for why a run ended
    with it."""

    exit_code = 1
    reason = "error"


class InputError(EdgenError):
    """An unusable input: something that the user wrote or named."""

    exit_code = 2


class UsageError(InputError):
    """A command line whose arguments do not fit together."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem in a file: `path` like `$.limits.in_flight`, `message` a clause about it."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class FileError(InputError):
    """An unusable file, with every problem found in it. `source` is the user's name of the file; `problems`
    is empty if one sentence is enough."""

    what = "file"
    most_shown = 100  # problems; a generated file can have one on every line

    def __init__(self, source: str, summary: str, problems: Sequence[Problem] = ()) -> None:
        self.source = source
        self.summary = summary
        self.problems = tuple(problems)
        super().__init__(source, summary, self.problems)

    @classmethod
    def of(cls, source: str, problems: Sequence[Problem]) -> Self:
        """Return an error on these problems, with their number in its summary."""
        return cls(source, f"{len(problems)} problem{'s' if len(problems) > 1 else ''}:", problems)

    def __str__(self) -> str:
        lines = [f"{self.what} {self.source}: {self.summary}"]
        lines += [f"  {problem}" for problem in self.problems[: self.most_shown]]
        if (more := len(self.problems) - self.most_shown) > 0:
            lines.append(f"  … and {more:,} more")
        return "\n".join(lines)


class JobError(FileError):
    """An unusable job file (or a `--set` on top of it)."""

    what = "job"


class SpaceError(FileError):
    """An unusable preference space file."""

    what = "space"


class TemplateError(FileError):
    """An invalid prompt template: unreadable, or failing to compile or render."""

    what = "template"


class LongPromptError(TemplateError):
    """A prompt with more characters than a request may have, for example after a very long answer."""


class DataError(FileError):
    """An unreadable shard, ED file or reply file."""

    what = "data"


def refuse_lines(source: str, kind: str, problems: Sequence[tuple[int, str]]) -> None:
    """Raise DataError if there are problems, (line number, message) pairs, in a file of lines. `kind` names
    the kind of file."""
    if not problems:
        return
    told = [Problem(f"line {number}", message) for number, message in problems[:_MOST_PROBLEMS]]
    if more := len(problems) - len(told):
        told.append(Problem("further lines", f"{more:,} more problems"))
    many = "s" if len(problems) > 1 else ""
    raise DataError(source, f"{len(problems):,} problem{many} in this {kind}:", told)


class RunError(InputError):
    """An unusable run folder or ledger; nothing in it was changed."""


class DamagedError(RunError):
    """A ledger or another file of a run with contents that edgen does not write: flipped bits, or manual
    changes."""


class ShortError(EdgenError):
    """A complete run with fewer accepted conversations than requested."""

    exit_code = 3
    reason = "short"


class UselessError(EdgenError):
    """An early stop because hardly any answer is usable, to avoid paying for more."""

    exit_code = 3
    reason = "useless"


class StoppedError(EdgenError):
    """A deliberate stop before the end; the run resumes when started again."""

    exit_code = 4
    reason = "stopped"


class DeadlineError(StoppedError):
    """A stop at the run's deadline."""

    reason = "deadline"


class HandedOver(EdgenError):  # noqa: N818 - an outcome, not a fault
    """A part that ends with request files which the user has to send; the run is resumable."""

    exit_code = 0
    reason = "handed_over"


class ProviderError(EdgenError):
    """A refusal by the service that waiting does not fix."""

    exit_code = 5
    reason = "refused"


class FailuresError(ProviderError):
    """Too many failed calls in a row, or a service that no longer answers."""

    reason = "failures"


class LockedError(EdgenError):
    """A run that another process holds."""

    exit_code = 6
    reason = "locked"


class SignalError(EdgenError):
    """A stop by a signal, with all answers stored."""

    reason = "interrupted"

    def __init__(self, signal_number: int, message: str) -> None:
        self.exit_code = 128 + signal_number
        super().__init__(message)


class FailureKind(enum.StrEnum):
    """The kind of failure of one attempt, the same for all vendors."""

    RATE_LIMIT = "rate_limit"  # 429, retry later
    OVERLOADED = "overloaded"  # 503, 529: the service is overloaded
    SERVER_ERROR = "server_error"  # any other 5xx
    TIMEOUT = "timeout"  # no answer in time, 408, 504
    CONNECTION = "connection"  # refused, reset, no such host, TLS
    BAD_RESPONSE = "bad_response"  # 200, but not in the promised format
    BAD_OUTPUT = "bad_output"  # 500: the service cannot parse its own model's output
    AUTHENTICATION = "authentication"  # 401, or a key that is missing or malformed
    PERMISSION = "permission"  # 403
    QUOTA = "quota"  # used-up quota, billing
    NOT_FOUND = "not_found"  # unknown model or path
    BAD_REQUEST = "bad_request"  # 400, 422: this request is never accepted
    CONTEXT_OVERFLOW = "context_overflow"  # the prompt does not fit the model
    LEFT = "left"  # the person who had to answer left the conversation


# Waiting may fix these: the call is retried until attempts or time run out.
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
_FEW = {FailureKind.BAD_OUTPUT: 2}  # attempts: the same prompt mostly fails again
# Waiting does not fix these, and the next call would fail, too: the run stops.
FATAL = frozenset(
    {FailureKind.AUTHENTICATION, FailureKind.PERMISSION, FailureKind.QUOTA, FailureKind.NOT_FOUND}
)
# Other kinds concern only one request: its scenario fails and the run continues.


def limit_attempts(kind: FailureKind, attempts: int) -> int:
    """Return how many of `attempts` are worth making after a failure of this kind."""
    return min(attempts, _FEW.get(kind, attempts)) if kind in RETRYABLE else 1


MOST_MESSAGE = 2_000  # characters of a failure's message


class CallError(Exception):
    """A failed attempt at one call.

    `kind` is the reason, `status` the HTTP status if there was one, `retry_after` the seconds that the server
    asked to wait (None: not stated). `message` is the server's own, shortened, without any key. `unsent`: the
    request certainly never reached the service, so it costs nothing.
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
        # A plugin may give anything, which is checked later.
        self.message = limit_length(message, MOST_MESSAGE) if isinstance(message, str) else message
        self.status = status
        self.retry_after = retry_after
        self.unsent = unsent
        super().__init__(kind, self.message, status, retry_after)

    def __str__(self) -> str:
        status = f" (HTTP {self.status})" if self.status is not None else ""
        return f"{self.kind}{status}: {self.message}"
