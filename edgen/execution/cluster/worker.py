"""A worker: it runs the generators of its units, and makes the calls that the head permits."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from edgen.config import backend_name, load_job
from edgen.core.errors import CallError, EdgenError, FailureKind
from edgen.core.values import Reply
from edgen.core.version import __version__
from edgen.execution.client.clients import make_clients
from edgen.execution.client.model_client import ModelClient
from edgen.execution.client.retry import complete_once
from edgen.execution.cluster.messages import (
    LEASE,
    LINGER,
    Answered,
    Asked,
    Broken,
    Call,
    Called,
    Ended,
    Failure,
    Message,
    Take,
    Unit,
)
from edgen.execution.rollout import Rollout
from edgen.planning.allowed_files import Reach
from edgen.planning.load import plans_of
from edgen.planning.plan import Plan
from edgen.protocols.task import Tasks
from edgen.providers import Backend, make
from edgen.providers.base import servers_of
from edgen.providers.trust import Consents

_GONE = 30.0  # seconds without a word from the head after which the process ends


class Worker:
    """An actor. `tell` takes the head's messages, `listen` returns its own."""

    def __init__(self, files: Mapping[str, bytes], consents: Consents) -> None:
        self._files, self._consents = files, consents
        self._plan: Plan
        self._clients: dict[str, ModelClient] = {}
        self._backends: dict[str, Backend] = {}
        self._outbox: list[Message] = []
        self._something = asyncio.Event()
        self._answers: dict[Unit, asyncio.Future[Reply | Failure]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._heard = time.monotonic()

    async def begin(self) -> dict[str, Any]:
        """Build plan and backends; return what the head compares, or the sentence that says what is wrong."""
        try:
            self._plan = _read_plan(self._files)
            job = self._plan.job
            for name in {backend_name(job, role) for role in self._plan.roles}:
                self._backends[name] = make(
                    job.backends[name],
                    timeout=job.limits.timeout,
                    connections=job.limits.in_flight,
                    environ=os.environ,
                    consents=self._consents,
                )
            self._clients = make_clients(self._plan.call_settings, self._backends, self._plan.roles)
        except EdgenError as error:
            return {"problem": str(error)}
        self._watch()
        identities = {role: client.backend.identity for role, client in self._clients.items()}
        return {
            "edgen": __version__,
            "fingerprint": self._plan.fingerprint(identities),
            "pid": os.getpid(),
        }

    async def tell(self, inbox: list[Message]) -> None:
        """Take the head's messages."""
        self._heard = time.monotonic()
        for message in inbox:
            match message:
                case Take():
                    self._keep(self._run(message))
                case Call():
                    self._keep(self._call(message))
                case Answered(unit, reply):
                    if (waiting := self._answers.pop(unit, None)) is not None and not waiting.done():
                        waiting.set_result(reply)

    async def listen(self) -> list[Message]:
        """Return this worker's messages, as soon as there are some; none after LINGER seconds."""
        self._heard = time.monotonic()
        if not self._outbox:
            try:
                await asyncio.wait_for(self._something.wait(), LINGER)
            except TimeoutError:
                return []
        await asyncio.sleep(0.002)  # what comes together goes together
        sent, self._outbox = self._outbox, []
        self._something.clear()
        return sent

    def _send(self, message: Message) -> None:
        self._outbox.append(message)
        self._something.set()

    def _keep(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _watch(self) -> None:
        """End the process when the head is gone."""
        if time.monotonic() - self._heard > _GONE:
            os._exit(0)
        asyncio.get_running_loop().call_later(1.0, self._watch)

    async def _call(self, call: Call) -> None:
        """Make one attempt."""
        backend = self._backends[call.backend]
        server = servers_of(backend).get(call.server, backend)
        try:
            if time.monotonic() - self._heard > LEASE:
                raise CallError(FailureKind.SERVER_ERROR, "the worker lost touch with the head", unsent=True)
            reply: Reply | Failure = await complete_once(server, backend.identity["type"], call.request)
        except CallError as failure:
            reply = Failure.of(failure)
        except EdgenError as error:
            self._send(Broken(str(error), ""))
            return
        except Exception:  # noqa: BLE001 - the head raises it
            self._send(Broken("", traceback.format_exc()))
            return
        self._send(Called(call.number, reply))

    async def _run(self, take: Take) -> None:
        """Run a unit's generator to its end."""
        try:
            await self._drive(take)
        except EdgenError as error:
            self._send(Broken(str(error), ""))
        except Exception:  # noqa: BLE001 - the head raises it
            self._send(Broken("", traceback.format_exc()))

    async def _drive(self, take: Take) -> None:
        unit, tasks = take.unit, cast("Tasks", self._plan)
        rollout = Rollout(tasks.task(*unit), self._clients)
        replayed, failure = rollout.answer_from(take.stored), None
        try:
            while (request := rollout.request) is not None:
                self._send(Asked(unit, request, rollout.key, replayed, rollout.refused))
                replayed = 0
                reply = await self._wait(unit)
                if isinstance(reply, Reply):
                    rollout.answer(reply)
                    continue
                rollout.fail(reply.error)
        except CallError as error:
            failure = Failure.of(error)
        finally:
            rollout.close()
        settled = None if failure is not None else rollout.task.settled(rollout.result, rollout.spent)
        group, spent = rollout.task.group, rollout.spent
        self._send(Ended(unit, settled, failure, group, spent, replayed, rollout.refused))

    async def _wait(self, unit: Unit) -> Reply | Failure:
        waiting: asyncio.Future[Reply | Failure] = asyncio.get_running_loop().create_future()
        self._answers[unit] = waiting
        return await waiting


def _read_plan(files: Mapping[str, bytes]) -> Plan:
    """Return the plan of a run's files. Raises JobError, SpaceError, TemplateError."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        source = Path(folder, "job.yaml")
        return plans_of(load_job(source), "job.yaml", Reach.of(source, outside=True))[""]
