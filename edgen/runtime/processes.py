"""Work in several processes: of this machine, or of a Ray cluster.

A piece of work is a function of a module with its arguments, such as a partial, and has a result that can be
pickled. A process of this machine ends when the one that started it does.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import IO, Any, Protocol

import msgspec

from edgen.core.errors import EdgenError, UsageError

_HEAD = 8  # bytes of the length of a pickle
HERE = "here"  # no cluster

Work = Callable[[], Any]


class _Result(msgspec.Struct, frozen=True):
    """The pickled value of a piece of work, or the error that ended it: `fault`, a bug's traceback, or the
    sentence of an EdgenError with its exit code."""

    value: bytes = b""
    error: str = ""
    code: int = 0
    fault: str = ""

    def get(self) -> Any:
        """Return the value. Raises the error."""
        if self.fault:
            raise RuntimeError(f"A process failed: {self.fault}")
        if self.error:
            raised = EdgenError(self.error)
            raised.exit_code = self.code
            raise raised
        return pickle.loads(self.value)  # noqa: S301 - from a process that this one started


class Processes:
    """Pieces of work that run side by side, each in a process. Leaving the context ends those at work."""

    def __init__(self, work: Sequence[Work], on: str = HERE) -> None:
        require_place(on)
        given = [pickle.dumps(one) for one in work]
        self._running = _on_ray(on, given) if work and on != HERE else _OnThisMachine(given)

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None
    ) -> None:
        self._running.end()

    def results(self) -> list[Any]:
        """Wait for all results. Raises the error that ended a piece of work."""
        return [msgspec.msgpack.decode(said, type=_Result).get() for said in self._running.results()]


class _Running(Protocol):
    """Processes at work."""

    def results(self) -> list[bytes]: ...

    def end(self) -> None: ...


def require_place(on: str) -> None:
    """Raise UsageError unless `on` names this machine or a cluster."""
    if on not in (HERE, "ray") and not on.startswith("ray://"):
        raise UsageError(f"--on {on}: write ray for a cluster of this machine, ray://ADDRESS, or here.")


class _OnThisMachine:
    """Processes of this machine: `python -m edgen.runtime.processes`."""

    def __init__(self, given: Sequence[bytes]) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        for one in given:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "edgen.runtime.processes"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # signals of a terminal are for this process, which ends the others
            )
            self._processes.append(process)
            assert process.stdin is not None
            send(process.stdin, one)  # and stays open while this process lives

    def results(self) -> list[bytes]:
        """Return the result that each printed."""
        return [self._result(process) for process in self._processes]

    def _result(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        said = process.stdout.read()
        process.wait()
        if process.returncode:
            lost = f"A process was killed ({process.returncode}). Run the command again."
            return msgspec.msgpack.encode(_Result(error=lost, code=2))
        return said

    def end(self) -> None:
        """Kill those at work."""
        for process in self._processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def _on_ray(on: str, given: Sequence[bytes]) -> _Running:
    from edgen.execution.cluster.tasks import RayTasks

    return RayTasks(on.removeprefix("ray").removeprefix("://"), _run, given)


def _run(pickled: bytes) -> bytes:
    """Do a piece of work; return its result."""
    try:
        result = _Result(pickle.dumps(pickle.loads(pickled)()))  # noqa: S301 - from the process that started this one
    except EdgenError as error:
        result = _Result(error=str(error), code=error.exit_code)
    except Exception:  # noqa: BLE001 - the process that started this one raises it
        result = _Result(fault=traceback.format_exc())
    return msgspec.msgpack.encode(result)


def send(pipe: IO[bytes], data: bytes) -> None:
    """Write a pickle for `receive` in another process."""
    pipe.write(len(data).to_bytes(_HEAD, "big") + data)
    pipe.flush()


def receive() -> bytes:
    """Return the pickle that the process that started this one sends on standard input. From then on, this
    process ends when that one does."""
    size = int.from_bytes(sys.stdin.buffer.read(_HEAD), "big")
    data = sys.stdin.buffer.read(size)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    return data


def _end_with_parent() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.stdout.buffer.write(_run(receive()))
    sys.stdout.buffer.flush()
    os._exit(0)
