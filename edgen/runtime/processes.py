"""Work in several processes: of this machine, or of a Ray cluster.

A piece of work is a function of a module with its arguments, such as a partial, and has a result that can be
pickled. A process of this machine does one piece after another, and ends with the process that started it.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import queue
import socket
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from types import TracebackType
from typing import IO, Any, Protocol

import msgspec

from edgen.core.errors import EdgenError, UsageError
from edgen.core.plugins import background
from edgen.core.plugins.faults import find_fault
from edgen.core.version import __version__

_HEAD = 8  # bytes of the length field of a pickle
_AHEAD = 2  # pieces of work for each process: it does one while the result of another is read
HERE = "here"  # this machine, no cluster

Work = Callable[[], Any]


class _Result(msgspec.Struct, frozen=True):
    """The pickled value of a piece of work, or the error that ended it: a bug's traceback (`fault`), or an
    EdgenError's sentence with its exit code."""

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
        return pickle.loads(self.value)  # noqa: S301 - from a process that this one has started


class Processes:
    """A number of processes that work at the same time. Leaving the context ends them. `environ`: the
    environment of processes of this machine; by default, that of this process."""

    def __init__(self, count: int, on: str = HERE, environ: Mapping[str, str] | None = None) -> None:
        require_place(on)
        self._count = count
        self._place: _Place = _OnThisMachine(count, environ) if on == HERE else _on_ray(on, count)

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None
    ) -> None:
        self._place.end()

    def iterate_results(self, work: Iterable[Work]) -> Iterator[Any]:
        """Begin a few pieces of work for each process, and return an iterator over all results in the order
        of the work. The iterator begins the next pieces, and raises the error that ended one."""
        each = iter(work)
        begun = deque(map(self._begin, islice(each, _AHEAD * self._count)))
        return self._collect(begun, each)

    def _begin(self, work: Work) -> Callable[[], bytes]:
        return self._place.begin(pickle.dumps((__version__, pickle.dumps(work))))

    def _collect(self, begun: deque[Callable[[], bytes]], each: Iterator[Work]) -> Iterator[Any]:
        while begun:
            said = begun.popleft()()
            begun.extend(map(self._begin, islice(each, 1)))
            yield msgspec.msgpack.decode(said, type=_Result).get()


class _Place(Protocol):
    """Processes on a machine or a cluster."""

    def begin(self, given: bytes) -> Callable[[], bytes]:
        """Begin a pickled piece of work; return a function that waits for its result."""

    def end(self) -> None:
        """End all processes."""


def require_place(on: str) -> None:
    """Raise UsageError unless `on` names this machine or a cluster."""
    if on == "ray://":  # for example from an unset variable
        raise UsageError("--on ray://: the address is missing, as in ray://10.0.0.1:6379.")
    if on not in (HERE, "ray") and not on.startswith("ray://"):
        raise UsageError(f"--on {on}: write ray for a cluster of this machine, ray://ADDRESS, or here.")


def require_several(on: str, workers: int) -> None:
    """Raise UsageError for an invalid place, and for a cluster without a number of workers."""
    require_place(on)
    if on != HERE and workers == 1:
        raise UsageError(f"--on {on}: say how many processes share the work, as in --workers 4.")


class _OnThisMachine:
    """Processes of this machine: `python -m edgen.runtime.processes`. They take the pieces of work in
    turn."""

    def __init__(self, count: int, environ: Mapping[str, str] | None) -> None:
        self._count, self._begun, self._environ = count, 0, environ
        self._processes: list[subprocess.Popen[bytes]] = []

    def begin(self, given: bytes) -> Callable[[], bytes]:
        """Give the next process a piece of work."""
        place = self._begun % self._count
        self._begun += 1
        if place == len(self._processes):
            self._processes.append(_start(self._environ))
        process = self._processes[place]
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # a dead process is reported when its result is read
            send(process.stdin, given)  # stdin stays open, since the process ends with it
        return lambda: _read_result(process)

    def end(self) -> None:
        """Kill all processes."""
        for process in self._processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()


def _start(environ: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "edgen.runtime.processes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environ,
        start_new_session=True,  # only this process handles signals of a terminal, and ends the others
    )


def _read_result(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    said = _read_frame(process.stdout)
    if said is not None:
        return said
    lost = f"A process was killed ({process.wait()}). Run the command again."
    return msgspec.msgpack.encode(_Result(error=lost, code=2))


def _on_ray(on: str, count: int) -> _Place:
    from edgen.execution.cluster.tasks import RayTasks

    return RayTasks(on.removeprefix("ray").removeprefix("://"), _run, count)


def _run(given: bytes) -> bytes:
    """Do a piece of work; return its result. Refuse the work of another version of edgen."""
    try:
        version, work = pickle.loads(given)  # noqa: S301 - from the process that started this one
        if version != __version__:
            raise UsageError(
                f"A process on {socket.gethostname()} has edgen {__version__}, this one {version}. Install "
                "the same on all nodes."
            )
        result = _Result(pickle.dumps(pickle.loads(work)()))  # noqa: S301 - from that process, too
    except EdgenError as error:
        result = _Result(error=str(error), code=error.exit_code)
    except OSError as error:
        if error.filename is None:
            result = _Result(fault=traceback.format_exc())
        else:
            said = f"{error.filename}: {error.strerror} (a process on {socket.gethostname()})."
            said += " The nodes of a cluster need the same files at the same paths."
            result = _Result(error=said, code=2)
    except BaseException as error:
        if (fault := find_fault(error)) is not None:
            result = _Result(error=str(fault), code=fault.exit_code)
        elif isinstance(error, Exception):  # raised in the process that started this one
            result = _Result(fault=traceback.format_exc())
        else:
            raise
    return msgspec.msgpack.encode(result)


def send(pipe: IO[bytes], data: bytes) -> None:
    """Write a pickle for `receive` in another process."""
    pipe.write(len(data).to_bytes(_HEAD, "big"))
    pipe.write(data)
    pipe.flush()


def _read_frame(pipe: IO[bytes]) -> bytes | None:
    """Return the next pickle; None at the end."""
    size = int.from_bytes(_read(pipe, _HEAD), "big")
    data = _read(pipe, size)
    return data if size and len(data) == size else None


def _read(pipe: IO[bytes], size: int) -> bytes:
    """Read `size` bytes, or fewer at the end."""
    data = bytearray()
    while len(data) < size and (more := pipe.read(size - len(data))):
        data += more
    return bytes(data)


_out: list[IO[bytes]] = []  # standard output, once it is kept


def keep_output() -> IO[bytes]:
    """Return standard output, kept from now on for what this process reports to the one that started it.

    What other code prints, such as a plugin or a program that it starts, goes to standard error, and so do
    the errors of plugins that no caller sees.
    """
    sys.stdout.flush()
    _out.append(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)
    threading.excepthook, sys.unraisablehook = background.on_thread, background.on_cleanup
    return _out[-1]


def report(line: msgspec.Struct) -> None:
    """Write a line of JSON for the process that started this one, which has called `keep_output`. If that
    process is gone, do nothing."""
    with contextlib.suppress(OSError):
        _out[-1].write(msgspec.json.encode(line) + b"\n")
        _out[-1].flush()


def receive() -> Iterator[bytes]:
    """Return an iterator over the pickles on standard input, from the process that started this one. This
    process ends when that one does."""
    received: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(received,), daemon=True).start()
    return iter(received.get, None)


def _receive(received: queue.SimpleQueue[bytes]) -> None:
    # Not sys.stdin.buffer: this thread would hold its lock while Python shuts down, a fatal error.
    pipe: Any = io.FileIO(0, closefd=False)
    while (data := _read_frame(pipe)) is not None:
        received.put(data)
    os._exit(1)


def _main() -> None:
    """Do pieces of work until the process that started this one has ended."""
    out = keep_output()
    for given in receive():
        send(out, _run(given))


if __name__ == "__main__":
    _main()
