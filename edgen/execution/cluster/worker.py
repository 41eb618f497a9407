"""A worker: it runs the generators of its units, and makes the calls that the head permits."""

from __future__ import annotations

import asyncio
import os
import pickle
import platform
import socket
import traceback
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from edgen.config import CallSettings
from edgen.core.errors import CallError, EdgenError, FailureKind
from edgen.core.plugins.faults import find_fault
from edgen.core.text import replace_surrogates
from edgen.core.values import Reply, Request
from edgen.core.version import __version__
from edgen.execution.client.backend_calls import complete_once
from edgen.execution.client.model_client import ModelClient
from edgen.execution.cluster.messages import (
    LEASE,
    AttemptResult,
    CallFailure,
    FirstReply,
    Heartbeat,
    Hello,
    OpenRequest,
    Permit,
    ServerAnswer,
    ServerQuestion,
    SetTasks,
    StartUnit,
    Unit,
    UnitOutcome,
    UnitReply,
    WorkerFailure,
)
from edgen.execution.cluster.shipping import unpack
from edgen.execution.cluster.wire import Wire, decode_to_worker
from edgen.execution.rollout import Rollout
from edgen.execution.session import make_clients
from edgen.protocols.parts import Tasks
from edgen.providers import Backend, list_servers, make
from edgen.providers.base import CountsLoad, CountsSlots
from edgen.providers.fleet import find_node_server_name
from edgen.providers.http import send_until
from edgen.providers.trust import Consents
from edgen.store.ledger.checked_reader import compute_outcome_checksums, compute_reply_checksum

_PATIENCE = 10.0  # seconds for the connection to the head, or to a server
_BROKEN = CallFailure("server_error", "the worker that made the call failed", None, None, unsent=False)
_PORTS = {"http": 80, "https": 443}


class HeadBackend(NamedTuple):
    """The identity of a backend that stays at the head, for the keys of its requests."""

    identity: Mapping[str, Any]
    model: str


class WorkerSetup(NamedTuple):
    """The setup that the head gives a worker."""

    settings: CallSettings  # settings of calls, from the job
    roles: tuple[str, ...]  # roles of requests
    called: tuple[str, ...]  # names of the backends that it calls itself
    known: Mapping[str, HeadBackend]  # all other backends
    consents: Consents  # hosts that keys may go to
    variables: tuple[str, ...]  # environment variables that hold keys at the head
    packed: bytes  # the tasks, pickled
    address: tuple[str, int] = ("", 0)  # host and port where the head listens
    secret: bytes = b""  # proves the worker to the head
    apart: float = 0.0  # seconds between two frames of messages


class Worker:
    """A Ray actor. Ray calls `describe` and `begin` once; everything else comes over the connection."""

    def __init__(self) -> None:
        self._wire: Wire
        self._tasks: Tasks
        self._equipment: WorkerSetup
        self._clients: dict[str, ModelClient] = {}
        self._backends: dict[str, Backend] = {}
        self._local: dict[str, str] = {}
        self._timeout: float | None = None  # seconds of an attempt
        self._asked: dict[Unit, tuple[Request, bytes]] = {}  # open requests, with their keys
        self._answers: dict[Unit, asyncio.Future[Reply | CallFailure]] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def describe(self) -> dict[str, Any]:
        """Return the versions, which must equal the head's, the process id and the node."""
        return {
            "edgen": __version__,
            "Python": platform.python_version(),
            "pid": os.getpid(),
            "node": socket.gethostname(),
        }

    async def begin(self, number: int, equipment: WorkerSetup) -> dict[str, Any]:
        """Create the backends, take the tasks, and connect to the head.

        Return only a `problem`, or: `fingerprint` of the tasks; `alone`: why the worker only makes calls;
        `local`: addresses of this node's servers by node-local backend; `without`: backends among these
        without an answering server.
        """
        self._equipment = equipment
        if missing := [name for name in equipment.variables if not os.environ.get(name)]:
            return {
                "problem": f"its environment lacks {' and '.join(missing)}, which the head has. Set it where "
                "Ray was started on that node, and restart Ray there."
            }
        try:
            self._make_backends(equipment)
        except EdgenError as error:
            return {"problem": str(error)}
        said: dict[str, Any] = {"local": self._local}
        try:
            self._equip(equipment.packed)
            identities = {role: client.backend.identity for role, client in self._clients.items()}
            said["fingerprint"] = self._tasks.make_fingerprint(identities)
        except Exception as error:  # noqa: BLE001 - of unpickling; calls need no tasks
            said["alone"] = (
                f"{type(error).__name__}: {error}" if not isinstance(error, EdgenError) else str(error)
            )
        loop = asyncio.get_running_loop()
        said["without"] = [name for name in self._local if not await self._answers_at(name)]
        try:
            async with asyncio.timeout(_PATIENCE):
                _, wire = await loop.create_connection(
                    lambda: Wire(decode_to_worker, self._hear, _leave, trusted=True, apart=equipment.apart),
                    *equipment.address,
                )
        except (OSError, TimeoutError) as error:
            where = ":".join(map(str, equipment.address))
            return {"problem": f"it cannot reach the head at {where} ({error or 'no answer'})."}
        self._wire = wire
        wire.send(Hello(number, equipment.secret))
        wire.send(Heartbeat(loop.time()))
        wire.flush()
        return said

    def _make_backends(self, equipment: WorkerSetup) -> None:
        """Create the backends that this worker calls. Raises EdgenError, for example if a key is missing."""
        settings = equipment.settings
        self._timeout = settings.limits.timeout
        for name in equipment.called:
            self._backends[name] = make(
                settings.backends[name],
                timeout=settings.limits.timeout,
                connections=settings.limits.in_flight,
                environ=os.environ,
                consents=equipment.consents,
            )
            config: Any = settings.backends[name]
            if getattr(config, "node_local", False):
                self._local[name] = find_node_server_name(config.each_server[0].base_url)
        every: dict[str, Any] = {**equipment.known, **self._backends}
        self._clients = make_clients(settings, every, equipment.roles)

    async def _answers_at(self, name: str) -> bool:
        """Return whether a server of a node-local backend answers on this node."""
        config: Any = self._equipment.settings.backends[name].each_server[0]
        address = urlsplit(config.base_url)
        try:
            async with asyncio.timeout(_PATIENCE):
                _, writer = await asyncio.open_connection(
                    address.hostname, address.port or _PORTS[address.scheme]
                )
        except (OSError, TimeoutError):
            return False
        writer.close()
        return True

    def _equip(self, packed: bytes) -> None:
        self._tasks = unpack(packed)

    def _hear(self, _wire: Wire, messages: list[Any]) -> None:
        """Handle the head's messages."""
        for message in messages:
            match message:
                case Permit():
                    self._begin(self._call, message)
                case ServerQuestion():
                    self._begin(self._tell, message)
                case UnitReply(unit, answer, failure):
                    self._answer(unit, answer or failure)
                case StartUnit():
                    self._begin(self._run, message)
                case SetTasks(packed):
                    self._equip(packed)

    def _answer(self, unit: Unit, answer: Reply | CallFailure | None) -> None:
        if (waiting := self._answers.pop(unit, None)) is not None and not waiting.done():
            assert answer is not None, "an answer is a reply or a failure"
            waiting.set_result(answer)

    def _begin(self, handle: Callable[[Any], Coroutine[Any, Any, None]], message: Any) -> None:
        """Handle a message in a task."""
        task = asyncio.ensure_future(self._handle(handle, message))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _handle(self, handle: Callable[[Any], Coroutine[Any, Any, None]], message: Any) -> None:
        """Handle a message. An error goes to the head, which raises it and stops waiting for a permit's
        call."""
        try:
            await handle(message)
        except Exception as error:  # noqa: BLE001 - the head raises it
            known = error if isinstance(error, EdgenError) else find_fault(error)
            if known is not None:
                said = WorkerFailure(replace_surrogates(str(known)), known.exit_code, known.reason)
            else:
                said = WorkerFailure("", fault=replace_surrogates(traceback.format_exc()))
            self._wire.send(said)
            permit = message.first if isinstance(message, StartUnit) else message
            if isinstance(permit, Permit):  # ignored if the head has the call's result
                self._wire.send(AttemptResult(permit.number, None, _BROKEN))

    async def _call(self, permit: Permit) -> None:
        """Make one attempt at the unit's open request, or at the request in the permit."""
        own, key = (None, b"") if permit.unit is None else self._asked.get(permit.unit, (None, b""))
        request = own
        if own is not None and permit.way != "schema":
            request = self._clients[own.role].form_support.adapt_request(own, permit.way)  # type: ignore[arg-type]
        if permit.request:
            request = pickle.loads(permit.request)  # noqa: S301 - only the head of this Ray cluster sends it
            if own is not None:
                request = msgspec.structs.replace(request, scene=own.scene, view=own.view)
        assert request is not None, "a permit is for an open request"
        if (reply := await self._attempt(permit, request)) is None:
            return
        if permit.unit is None or permit.request or own is None:
            self._wire.send(AttemptResult(permit.number, reply))
            return
        self._wire.send(
            AttemptResult(permit.number, reply, None, compute_reply_checksum(own.address, key, reply))
        )
        # The head handles later messages of the unit only after the reply is on its disk.
        self._answer(permit.unit, reply)

    async def _attempt(self, permit: Permit, request: Request) -> Reply | None:
        """Make an attempt and return the reply; report a failure and return None."""
        kind, server = self._find_server(permit)
        try:
            if asyncio.get_running_loop().time() - permit.heard > LEASE:
                raise CallError(FailureKind.SERVER_ERROR, "the worker lost touch with the head", unsent=True)
            send_until.set(permit.heard + LEASE)  # the request may have to wait for a connection
            return await complete_once(server, kind, request, self._timeout)
        except CallError as failure:
            self._wire.send(AttemptResult(permit.number, None, CallFailure.of(failure)))
            return None

    async def _call_first(self, permit: Permit, rollout: Rollout) -> tuple[FirstReply, Reply] | None:
        """Make an attempt at a rollout's first request, unseen by the head. Return the message for the head
        and the reply for the rollout; None after a failure, or if the permit does not fit."""
        asked, client = rollout.request, rollout.client
        assert asked is not None, "it is open"
        if client.name != permit.backend or asked.other_form or (asked.prose and not permit.way):
            self._wire.send(AttemptResult(permit.number, None))
            return None
        adapted = asked
        if asked.prose and permit.way != "schema":
            adapted = client.form_support.adapt_request(asked, permit.way)  # type: ignore[arg-type]
        if (reply := await self._attempt(permit, adapted)) is None:
            return None
        costs = client.charges.charge(reply, asked)
        checksum = compute_reply_checksum(asked.address, rollout.key, reply)
        light, text = msgspec.structs.replace(reply, text=""), reply.text.encode()
        place = (asked.address, rollout.key, asked.role)
        return FirstReply(permit.number, light, text, *place, *costs, checksum), reply

    def _find_server(self, asked: Permit | ServerQuestion) -> tuple[str, Backend]:
        """Return the type of a backend, and one of its servers."""
        backend = self._backends[asked.backend]
        return backend.identity["type"], list_servers(backend).get(asked.server, backend)

    async def _tell(self, question: ServerQuestion) -> None:
        """Ask a server about itself."""
        _, server = self._find_server(question)
        value: list[str] | int | None = None
        try:
            if question.about == "models":
                value = await server.models()
            elif question.about == "slots" and isinstance(server, CountsSlots):
                value = await server.slots()
            elif question.about == "load" and isinstance(server, CountsLoad):
                value = await server.load()
        except CallError as failure:
            self._wire.send(ServerAnswer(question.number, None, CallFailure.of(failure)))
            return
        self._wire.send(ServerAnswer(question.number, value))

    async def _run(self, take: StartUnit) -> None:
        """Run a unit's generator to its end."""
        unit, wire, permit = take.unit, self._wire, take.first
        rollout = Rollout(self._tasks.make_task(*unit), self._clients)
        replayed, failure = rollout.answer_from(take.stored), None
        unsent: FirstReply | None = None  # to be sent with the outcome, if no request follows
        first: Request | None = None
        try:
            while (request := rollout.request) is not None:
                if permit is not None:
                    called, permit = await self._call_first(permit, rollout), None
                    if called is not None:
                        unsent = called[0]
                        rollout.answer(called[1])
                        first = _lighten(request) if rollout.refused else None
                        continue
                if unsent is not None:
                    wire.send(unsent)
                    unsent = None
                self._asked[unit] = request, rollout.key
                key, refused = rollout.key, rollout.refused
                wire.send(OpenRequest(unit, _lighten(request), key, replayed, refused, first))
                replayed, first = 0, None
                reply = await self._wait(unit)
                if isinstance(reply, Reply):
                    rollout.answer(reply)
                    continue
                rollout.fail(reply.error)
        except CallError as error:
            failure = CallFailure.of(error)
        except BaseException:
            if unsent is not None:  # its reply is paid for
                wire.send(unsent)
            raise
        finally:
            self._asked.pop(unit, None)
            rollout.close()
        if permit is not None:  # the rollout made no request
            wire.send(AttemptResult(permit.number, None))
        self._send_outcome(unit, rollout, failure, (replayed, first), unsent)

    def _send_outcome(
        self,
        unit: Unit,
        rollout: Rollout,
        failure: CallFailure | None,
        since: tuple[int, Request | None],
        unsent: FirstReply | None,
    ) -> None:
        """Send the outcome of a rollout with the `unsent` reply, if any. `failure`: of its last request.
        `since`: the outcome's `replayed` and `first`."""
        settled, sums, group = None, None, rollout.task.group
        try:
            if failure is None:
                settled = rollout.task.settled(rollout.result, rollout.spent)
                facts = (settled.status, settled.reason, settled.detail, group, rollout.last_key)
                sums = compute_outcome_checksums(unit, facts, settled.record)
        except BaseException:
            if unsent is not None:
                self._wire.send(unsent)
            raise
        replayed, first = since
        end = (rollout.last_key, rollout.simulated, replayed, rollout.refused, sums, first)
        outcome = UnitOutcome(unit, settled, failure, group, *end)
        self._wire.send(outcome if unsent is None else msgspec.structs.replace(unsent, ended=outcome))

    async def _wait(self, unit: Unit) -> Reply | CallFailure:
        waiting: asyncio.Future[Reply | CallFailure] = asyncio.get_running_loop().create_future()
        self._answers[unit] = waiting
        return await waiting


def _lighten(request: Request) -> Request:
    """Return a request without the parts that only the call itself needs."""
    if request.same_prompt:
        request = msgspec.structs.replace(request, same_prompt=tuple(map(_lighten, request.same_prompt)))
    if request.scene is None and request.view is None and not request.speakers:
        return request
    return msgspec.structs.replace(request, scene=None, view=None)


def _leave(_wire: Wire) -> None:
    """End the process when the head is gone or has given this worker up."""
    os._exit(0)
