"""The functions of Ray that edgen calls. Actors are objects of this process and connect to
the head as workers do."""

from __future__ import annotations

import asyncio
import platform
import signal
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

from edgen.core.version import __version__
from edgen.execution.cluster.messages import Heartbeat, Hello
from edgen.execution.cluster.wire import Wire, decode_to_worker
from edgen.execution.cluster.worker import WorkerSetup


class RayError(Exception):
    """Ray's base of all errors."""


class Method:
    """A method of an actor."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def remote(self, *given: Any) -> asyncio.Future[Any]:
        return asyncio.ensure_future(self._call(*given))


class Actor:
    """A worker that connects, and does nothing. `fate`: it `dies` while it begins, `leaves` after it has
    connected, `hangs`, is `old`, or `works`."""

    def __init__(self, ray: FakeRay, fate: str, number: int) -> None:
        self._ray, self.fate, self.number, self.killed = ray, fate, number, False
        self.wire: Wire | None = None
        self.describe, self.begin = Method(self._describe), Method(self._begin)

    async def _describe(self) -> dict[str, Any]:
        version = "0.1" if self.fate == "old" else __version__
        return {"edgen": version, "Python": platform.python_version(), "pid": self.number, "node": "there"}

    async def _begin(self, number: int, equipment: WorkerSetup) -> dict[str, Any]:
        if self.fate == "dies":
            raise RayError("The actor died unexpectedly before finishing this task.")
        if self.fate == "hangs":
            await asyncio.Event().wait()
        _, self.wire = await asyncio.get_running_loop().create_connection(
            lambda: Wire(decode_to_worker, lambda *_: None, lambda _: None, trusted=True, apart=0.0),
            *equipment.address,
        )
        self.wire.send(Hello(number, equipment.secret))
        self.wire.send(Heartbeat(0.0))
        self.wire.flush()
        if self.fate == "leaves":
            assert self.wire._transport is not None, "it is connected"
            self.wire._transport.close()  # after the frame that was sent before
            while not self._ray.is_lost(number):
                await asyncio.sleep(0.001)
        return {"local": {}, "fingerprint": "f", "without": []}

    def kill(self) -> None:
        self.killed = True
        if self.wire is not None:
            self.wire.close()


class FakeRay(types.ModuleType):
    """The module `ray`. `fates`: of the actors, in the order of their starts; later actors work."""

    def __init__(self, fates: Iterable[str] = ()) -> None:
        super().__init__("ray")
        self.actors: list[Actor] = []
        self.exceptions = types.SimpleNamespace(RayError=RayError)
        self._fates = iter(fates)
        loader = types.SimpleNamespace(reset_cache=lambda: None)
        self._raylet = types.SimpleNamespace(
            Config=types.SimpleNamespace(initialize=lambda _text: None),
            AuthenticationTokenLoader=types.SimpleNamespace(instance=lambda: loader),
        )
        self._private = types.SimpleNamespace(worker=types.SimpleNamespace())
        self.util = types.SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1")
        self.on_init: Callable[[], None] = lambda: None
        self.is_lost: Callable[[int], bool] = lambda _number: False  # has the head noticed the loss?
        self.shut_down = 0

    def remote(self, **_options: Any) -> Callable[[type], Any]:
        return lambda _kind: types.SimpleNamespace(remote=self._make)

    def _make(self) -> Actor:
        self.actors.append(Actor(self, next(self._fates, "works"), len(self.actors) + 1))
        return self.actors[-1]

    def kill(self, actor: Actor) -> None:
        actor.kill()

    def init(self, **_options: Any) -> None:
        """Set a handler of SIGTERM, as Ray does."""
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(number))
        self.on_init()

    def is_initialized(self) -> bool:
        return False

    def shutdown(self) -> None:
        self.shut_down += 1

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def get_runtime_context(self) -> Any:
        return types.SimpleNamespace(gcs_address="127.0.0.1:6379")
