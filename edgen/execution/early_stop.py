"""Early stop of a run whose answers are unusable.

Otherwise a job whose model does not follow the template would be paid for to its last conversation. So newly
fetched answers are counted as they are read. The run stops if less than 5% of at least 40 answers of a role,
or of at least 20 settled conversations, are usable. An answer is usable if its protocol accepted it; if not,
the next request or the result gives the reason. Until the first unusable answer, `OutcomeRecorder` counts
alone.

The ledger keeps the verdict with the fingerprint of everything that shapes the answers. If the run starts
again unchanged, it sends nothing and repeats the error. After any change of the fingerprint, the count begins
anew.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from edgen.core.errors import UselessError
from edgen.core.text import describe_reasons
from edgen.core.values import RejectionReason, Reply, Request, Status
from edgen.planning.speakers import describe_reply
from edgen.protocols.reasons import find_reason
from edgen.store.ledger.opening import decode_fact

if TYPE_CHECKING:
    from edgen.execution.client.form_support import FormSupport
    from edgen.execution.scheduler import Work

ANSWERS = 40  # answers needed for a verdict
SETTLED = 20  # settled conversations, or other tasks, needed for a verdict
GATED = 50  # settled tasks, none of which passed the gates
LEAST = 0.05  # minimum share of usable answers, or conversations
_SHOWN = 200  # characters of a reply that are quoted
USELESS = "useless"  # the ledger's fact with the verdict
_LOOK = "`edgen preview JOB` shows the prompt."
# Advice, by the form in which answers were requested.
_IN_WORDS = (
    "The model does not follow the form: request it with `forms: schema`, put a JSON Schema next to the "
    f"template, or take a model that follows it; {_LOOK}"
)
_SCHEMA_LOST = (
    "The model does not follow the form in words: take a service that keeps to a JSON Schema, or a model "
    f"that follows the words; {_LOOK}"
)
_BY_SCHEMA = (
    "The answers do not fit although the service gets the form as a schema: give them room with "
    f"`max_tokens`, try the schema with `edgen doctor JOB`, or take a larger model; {_LOOK}"
)
_NAMES = f"Name the roles of the space in the template, or say under `role_words` what it calls them; {_LOOK}"


class _Latest(NamedTuple):
    """The last unusable answer, its request as it was sent, and its form in words."""

    request: Request
    sent: Request
    reply: Reply
    form: str

    @property
    def strangers(self) -> str:
        """A clause that names the speakers of the reply who are no roles; empty without any."""
        return describe_reply(self.reply.text, self.request)

    @property
    def help(self) -> str:
        """Advice for answers that do not have the requested form."""
        if self.sent.schema is not None:
            return _BY_SCHEMA
        if self.request.schema is not None:
            return _SCHEMA_LOST
        return _NAMES if self.strangers else _IN_WORDS


def advise(reasons: Counter[str], default: str = _IN_WORDS, protocol: str = "") -> str:
    """Return advice for the most frequent of these reasons; empty without reasons. `default`: advice for a
    reason that declares none. `protocol`: the protocol that may declare the reason."""
    if not reasons:
        return ""
    found = find_reason(max(reasons, key=lambda one: reasons[one]), protocol)
    return (found and found.advice) or default


class _Noted(msgspec.Struct, frozen=True):
    """The note of an early stop: fingerprint and time (seconds since the epoch)."""

    fingerprint: str
    at: float


class Usefulness:
    """The counts of usable answers of one session, and the verdict, which it notes in the session's ledger.
    `usable`, `accepted`: the answers by role, and the tasks, before its creation at the first unusable
    one."""

    def __init__(self, work: Work, usable: Mapping[str, int], accepted: int) -> None:
        settings, ledger = work.tasks.call_settings, work.ledger
        self._help = work.tasks.useless_help
        self._wanted = settings.stop_when_useless
        self._gates_count = not settings.top_up  # a top-up ends its own planning
        self._ledger, self._fingerprint, self._counts = ledger, work.fingerprint, work.counts
        self._answers = defaultdict(int, usable)  # answers by role
        self._usable = defaultdict(int, usable)
        self._settled = self._read = self._accepted = accepted
        self._reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)  # of unusable answers
        self._rejected: Counter[str] = Counter()  # why settled tasks were rejected
        self._latest: _Latest | None = None
        self._has_stopped = False
        self._before = decode_fact(ledger.read_fact(USELESS) or None, _Noted, ledger.path, "a note")
        if self._before is not None and not self._wanted:
            ledger.set_fact(USELESS, "")

    def refuse_useless(self) -> None:
        """Raise UselessError if the run stopped as useless before and nothing has changed since. Called
        before each request."""
        if self._wanted and self._before is not None and self._before.fingerprint == self._fingerprint:
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self._before.at))
            raise UselessError(
                f"{self._ledger.path}: this run stopped at {when} because hardly any answer was "
                "usable, and nothing that changes its answers has changed since. Nothing was "
                f"requested. {self._look()} Change the template, the model or its settings and "
                f"start again; {_GO_ON}"
            )

    def count_answer(
        self, request: Request, reply: Reply, refused: str, forms: FormSupport, *, retried: bool
    ) -> None:
        """Count a newly fetched answer. `refused`: why it is unusable; empty if it is usable. `forms`: the
        way of requests to its backend. `retried`: the protocol retries the request."""
        role = request.role
        self._answers[role] += 1
        if not refused:
            self._usable[role] += 1
            return
        self._latest = _Latest(request, forms.adapt_request(request), reply, forms.describe(request))
        self._reasons[role][refused] += 1
        if retried:
            self._counts.retried_by[refused] += 1

    def count_settled(self, status: Status, reason: str | None) -> None:
        """Count a settled task with newly fetched answers."""
        self._settled += 1
        if status is Status.ACCEPTED:
            self._accepted += 1
            self._read += 1
            return
        self._read += reason is not None and reason.startswith(f"{RejectionReason.GATE}:")
        if status is Status.REJECTED:
            self._rejected[reason or "unknown"] += 1

    def reach_verdict(self) -> UselessError | None:
        """Return the error that stops the run, only once, and note it in the ledger; None while enough
        answers are usable."""
        if not self._wanted or self._has_stopped:
            return None
        for role, answers in self._answers.items():
            if answers >= ANSWERS and self._usable[role] < LEAST * answers:
                who = "" if role == "default" else f" of the backend {role}"
                found = f"{self._usable[role]} of {answers} answers{who} are usable"
                return self._stop(found, self._reasons[role])
        if self._settled >= SETTLED and self._read < LEAST * self._settled:
            return self._stop(f"{self._accepted:,} of {self._settled:,} are accepted", self._rejected)
        if self._gates_count and self._settled >= GATED and not self._accepted:
            return self._stop(f"0 of {self._settled:,} passed the gates", self._rejected)
        return None

    def _stop(self, found: str, reasons: Counter[str]) -> UselessError:
        self._has_stopped = True
        noted = _Noted(self._fingerprint, time.time())
        self._ledger.set_fact(USELESS, msgspec.json.encode(noted).decode())
        latest = self._latest
        asked = ("", _IN_WORDS) if latest is None else (latest.request.protocol, latest.help)
        help_ = self._help or advise(reasons, asked[1], asked[0])
        return UselessError(
            f"{found} ({describe_reasons(reasons)}), so the run stopped rather than pay for more "
            f"of them. {self._describe_latest()}{help_} {self._look()} Then start again: all "
            "answers are stored, and those that the change does not affect are used again; "
            f"{_GO_ON}"
        )

    def _describe_latest(self) -> str:
        """Describe the latest unusable answer, and the requested form."""
        if self._latest is None:
            return ""
        reply, strangers = self._latest.reply, self._latest.strangers
        text = reply.refusal or reply.text
        start = " ".join(text.split())[:_SHOWN]
        said = (
            f"begins “{start}” ({len(text):,} characters, ended by {reply.finish_reason})"
            if start
            else "is empty"
        )
        speaks = f" In it {strangers}." if strangers else ""
        return f"The latest of them {said}; its form was requested {self._latest.form}.{speaks} "

    def _look(self) -> str:
        return f"See the latest raw reply with `edgen show {self._ledger.path} last`."


_GO_ON = "`--set stop_when_useless=false` continues regardless."
