"""The requests of one conversation as they were sent: its protocol runs again on the stored replies."""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec

from edgen.core.errors import EdgenError
from edgen.core.values import Address, Message, Reply
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import load_plan
from edgen.planning.plan import Plan
from edgen.store.ledger import LedgerReader
from edgen.store.run_folder import RunFolder

_MOST = 10_000  # most requests of one conversation


class SentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a conversation."""

    step: int  # step of the address
    attempt: int  # attempt of the address
    role: str  # role that answered
    seed: int  # seed of the call
    messages: tuple[Message, ...]  # messages of the prompt
    schema: str | None  # JSON Schema of the answer; None without one
    reply: Reply | None  # the stored reply; None without one


def read_sent_requests(
    folder: Path, arm: str, scenario: int, replicate: int
) -> tuple[list[SentRequest], str | None]:
    """Return the requests of one conversation of a run, in order, and why some are missing, None if all are
    present.

    The first request without a stored reply is the last one: it was not sent, or got no answer. Raises the
    errors of unreadable runs.
    """
    run = RunFolder(folder).arm(arm)
    facts = run.job.stat()
    plan = _load(run.job, facts.st_mtime_ns, facts.st_size)
    if plan.rounds.of(scenario):
        return [], "Requests of later rounds depend on all conversations of earlier ones; they are not shown."
    found: list[SentRequest] = []
    with LedgerReader(run.ledger) as ledger:
        stored: dict[object, dict[tuple[int, int], Reply]] = {}

        def find_reply(address: Address) -> Reply | None:
            if address.task not in stored:
                answers = ledger.read_replies(address.scenario, address.task)
                stored[address.task] = {(step, attempt): reply for step, attempt, reply in answers}
            return stored[address.task].get((address.step, address.attempt))

        work = plan.make_task(scenario, replicate).protocol
        try:
            request = next(work)
            while len(found) < _MOST:
                reply = find_reply(request.address)
                found.append(
                    SentRequest(
                        step=request.address.step,
                        attempt=request.address.attempt,
                        role=request.role,
                        seed=request.seed,
                        messages=request.messages,
                        schema=None if request.schema is None else request.schema.decode("utf-8", "replace"),
                        reply=reply,
                    )
                )
                if reply is None:
                    return found, "The ledger has no reply to the last of these requests."
                request = work.send(reply)
        except StopIteration:
            return found, None
        except EdgenError as problem:
            return found, f"The requests after these cannot be rendered again: {problem}"
        finally:
            work.close()
    return found, f"Only the first {_MOST:,} requests are shown."


@functools.lru_cache(maxsize=4)
def _load(job: Path, _written: int, _size: int) -> Plan:
    return load_plan(job, (), AllowedFiles.of(job))
