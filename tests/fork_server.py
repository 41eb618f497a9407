"""Processes of `edgen` for the tests: one process has imported all of edgen, and forks for each command.

A fork is a process like any other, with files, signals, a directory and an environment of its own; only the
half second of imports is saved. The workers of pytest-xdist share one server, which ends with the last of
them. The forks of a process of pytest end with it. Tests about the start itself (imports, closed files) start
Python anew instead.

In a shell, the `edgen` in the folder `in_shell` is such a fork (tests/forked_edgen.py), and so are the
processes that a fork starts by `sys.executable -P -m edgen.…`: indexes of pages, partitions, workers.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pickle
import pkgutil
import resource
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple

from tests import ROOT

_TEMPORARY = tempfile.gettempdir()  # before any test sets another
share = True  # tests.cpu_times sets it to False, so that each server's CPU belongs to one known process


class Forked:
    """A running command, with the members of `asyncio.subprocess.Process` that tests use."""

    def __init__(self, pid: int, status: socket.socket, outputs: Sequence[asyncio.StreamReader]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdout, self.stderr = outputs
        self._status = status
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(status, self._end)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._status)
        code = self._status.recv(100)
        self._status.close()
        self.returncode = int(code or -signal.SIGKILL)
        self._ended.set()

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # its end is not reported yet
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    async def communicate(self) -> tuple[bytes, bytes]:
        out, err = await asyncio.gather(self.stdout.read(), self.stderr.read())
        await self.wait()
        return out, err


async def start(
    *arguments: str | Path,
    code: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    limits: Mapping[int, int] | None = None,
    terminal: int | None = None,
) -> Forked:
    """Start `edgen` with the arguments, or `python -c code` with them.

    It runs here and in this environment, unless `cwd` and `env` say otherwise, within `limits` of the system
    (`{resource.RLIMIT_FSIZE: bytes}`). `terminal`: the file that it reads from and writes its remarks to.
    """
    loop = asyncio.get_running_loop()
    pipes = [os.pipe(), os.pipe()]
    files = _files(terminal, *(write for _, write in pipes))
    status = _ask(arguments, files, code=code, cwd=cwd, env=env, limits=limits)
    outputs = []
    for read, write in pipes:
        os.close(write)
        outputs.append(reader := asyncio.StreamReader())
        protocol = functools.partial(asyncio.StreamReaderProtocol, reader)
        await loop.connect_read_pipe(protocol, os.fdopen(read, "rb"))
    status.setblocking(False)
    return Forked(_number(await loop.sock_recv(status, 4)), status, outputs)


def _ask(
    arguments: Sequence[str | Path],
    files: Sequence[int],
    *,
    code: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    limits: Mapping[int, int] | None = None,
) -> socket.socket:
    """Ask the server for a fork; return the socket that first gets its number, then its end."""
    status, theirs = socket.socketpair()
    _send(server(), arguments, [theirs.fileno(), *files], code=code, cwd=cwd, env=env, limits=limits)
    theirs.close()
    return status


def _send(
    to: socket.socket,
    arguments: Sequence[str | Path],
    files: Sequence[int],
    *,
    code: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    limits: Mapping[int, int] | None = None,
) -> None:
    """Send a request with its files."""
    wanted = {
        "arguments": [str(each) for each in arguments], "code": code, "cwd": str(cwd or Path.cwd()),
        "environ": dict(os.environ if env is None else env), "limits": list((limits or {}).items()),
    }  # fmt: skip
    request = json.dumps(wanted).encode()
    socket.send_fds(to, [len(request).to_bytes(4, "big")], files)
    to.sendall(request)


def _number(said: bytes) -> int:
    assert said, "the server of forks has ended; its own words are on stderr"
    return int.from_bytes(said, "big")


def _files(terminal: int | None, out: int, err: int) -> tuple[int, int, int]:
    """Return the files that a command reads from and writes to."""
    return (_nothing(), out, err) if terminal is None else (terminal, out, terminal)


@functools.cache
def _nothing() -> int:
    return os.open(os.devnull, os.O_RDONLY)


def run(*arguments: str | Path, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run `edgen`, or code, to its end: `start` for tests that are no coroutines."""

    async def whole() -> subprocess.CompletedProcess[str]:
        process = await start(*arguments, **how)
        out, err = await asyncio.wait_for(process.communicate(), 180)
        return subprocess.CompletedProcess(arguments, await process.wait(), out.decode(), err.decode())

    return asyncio.run(whole())


async def run_in_turn(
    *arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Run `edgen` to its end in a fork that runs one command after another; return its code and outputs.

    A new fork copies the pages that it writes to, which costs more than most commands do. If a command ends
    by a signal or with a bug, its fork runs no other.
    """
    server()  # a unit test may start no process
    needed = tuple(sorted(_NEEDED.keys() & {*arguments}))
    idle = _idle.setdefault(needed, [])
    standing = idle.pop() if idle else Standing(needed)
    try:
        ended = await standing.run(arguments, cwd, env)
    except BaseException:
        standing.kill()
        raise
    if ended[0] in (0, *range(2, 10)) and standing.count < MOST_IN_TURN:
        idle.append(standing)
    else:
        standing.kill()
    return ended


MOST_IN_TURN = 50  # commands of one fork
_idle: dict[tuple[str, ...], list[Standing]] = {}  # by the words of `_NEEDED` in their commands


class Standing:
    """A fork that runs one command after another; requests go over its standard input."""

    running: ClassVar[set[int]] = set()  # the numbers of all of them

    def __init__(self, needed: Sequence[str]) -> None:
        self.count = 0
        self._channel, theirs = socket.socketpair()
        code = "from tests import fork_server; fork_server.run_each()"
        self._status = _ask(needed, (theirs.fileno(), 2, 2), code=code)
        theirs.close()
        self.pid = _number(self._status.recv(4))
        self.running.add(self.pid)

    async def run(
        self, arguments: Sequence[str | Path], cwd: Path | None, env: Mapping[str, str] | None
    ) -> tuple[int, str, str]:
        self.count += 1
        loop, outputs = asyncio.get_running_loop(), []
        pipes = [os.pipe(), os.pipe()]
        self._channel.setblocking(True)
        _send(self._channel, arguments, [_nothing(), *(write for _, write in pipes)], cwd=cwd, env=env)
        self._channel.setblocking(False)
        for read, write in pipes:
            os.close(write)
            outputs.append(reader := asyncio.StreamReader())
            protocol = functools.partial(asyncio.StreamReaderProtocol, reader)
            await loop.connect_read_pipe(protocol, os.fdopen(read, "rb"))
        out, err = await asyncio.gather(*(reader.read() for reader in outputs))
        code = b""
        with contextlib.suppress(ConnectionError):  # the fork was killed
            code = await loop.sock_recv(self._channel, 100)
        if not code:
            self._status.setblocking(False)
            code = await loop.sock_recv(self._status, 100)
        return int(code or -signal.SIGKILL), out.decode(), err.decode()

    def kill(self) -> None:
        self.running.discard(self.pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._channel.close()
        self._status.close()


class Popen:
    """A running command for tests that are no coroutines, also inside an event loop.

    It has the members of `subprocess.Popen` that tests use, with texts.
    """

    def __init__(
        self, *arguments: str | Path, stdin: int | None = None, stdout: int | None = None,
        stderr: int | None = None, **how: Any,
    ) -> None:  # fmt: skip
        own: list[int] = []
        self.stdin: IO[str] | None = None
        source = _nothing()
        if stdin == subprocess.PIPE:
            source, write = os.pipe()
            own.append(source)
            self.stdin = open(write, "w", encoding="utf-8")  # noqa: SIM115 - closed with the process
        out, self.stdout = _output(stdout, 1, own)
        err, self.stderr = (out, None) if stderr == subprocess.STDOUT else _output(stderr, 2, own)
        self._status = _ask(arguments, (source, out, err), **how)
        for file in own:
            os.close(file)
        self.pid = _number(self._status.recv(4))
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._status.settimeout(timeout)
            try:
                code = self._status.recv(100)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(f"fork {self.pid}", timeout or 0) from None
            self._status.close()
            self.returncode = int(code or -signal.SIGKILL)
        return self.returncode

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # its end is not reported yet
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, text: str = "", timeout: float | None = None) -> tuple[str, str]:
        """Send it a text, read all its output, and wait for its end."""
        said = ["", ""]
        reading = [
            threading.Thread(target=lambda at=at, file=file: said.__setitem__(at, file.read()), daemon=True)
            for at, file in enumerate((self.stdout, self.stderr))
            if file is not None and not file.closed
        ]
        for each in reading:
            each.start()
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.write(text)
                self.stdin.close()
        self.wait(timeout)
        for each in reading:
            each.join(timeout)
        return said[0], said[1]

    def __enter__(self) -> Popen:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self.stdin, self.stdout, self.stderr):
            if file is not None:
                file.close()
        self.wait()


def _output(wanted: int | None, inherited: int, own: list[int]) -> tuple[int, IO[str] | None]:
    """Return the file that a command writes to and, if that is a pipe, the end that is read here."""
    if wanted is None or wanted >= 0:
        return (inherited if wanted is None else wanted), None
    if wanted == subprocess.DEVNULL:
        own.append(file := os.open(os.devnull, os.O_WRONLY))
        return file, None
    read, write = os.pipe()
    own.append(write)
    return write, open(read, encoding="utf-8", errors="backslashreplace")


def finish(*arguments: str | Path, text: str = "", **how: Any) -> subprocess.CompletedProcess[str]:
    """Run `edgen` to its end inside a running event loop, such as Playwright's; elsewhere use `run`."""
    files = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.PIPE if text else None}
    with Popen(*arguments, **files, **how) as process:  # type: ignore[arg-type]
        out, err = process.communicate(text, 300)
        return subprocess.CompletedProcess(arguments, process.wait(), out, err)


def in_shell() -> str:
    """Return a folder for PATH, with an `edgen` that is a fork."""
    server()
    return str(_address().parent)


def in_place_of_python() -> str:
    """Return a program for `sys.executable`: edgen's processes become forks, and anything else is Python."""
    return os.path.join(in_shell(), "python")


def use_default_signals() -> None:
    """Set the signals of a person at a terminal: tests in the background may ignore some."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@functools.cache
def server() -> socket.socket:
    """Return the socket that takes requests; the first process that needs it starts the server."""
    address, process, end = _address(), None, time.monotonic() + 120
    while time.monotonic() < end:
        ours = socket.socket(socket.AF_UNIX)
        try:
            ours.connect(str(address))
        except OSError:  # it does not listen yet
            ours.close()
        else:
            return ours
        if process is None or process.poll() is not None:
            process = _start_server(address)
        time.sleep(0.02)
    raise TimeoutError(f"no server of forks listens at {address}")


def _address() -> Path:
    """Return the server's address: one for all workers of pytest-xdist, or one for this process."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") if share else None
    name = run[:12] if run else str(os.getpid())  # systems take about a hundred characters for all of it
    return Path(_TEMPORARY, f"edgen-forks-{name}", "socket")  # tests/forked_edgen.py finds it next to itself


def _start_server(address: Path) -> subprocess.Popen[bytes]:
    address.parent.mkdir(mode=0o700, exist_ok=True)
    command = [sys.executable, "-m", "tests.fork_server", str(address)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    server.process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environ
    )
    return server.process


# --- in the server's process ------------------------------------------------------------------


def _write_programs(folder: Path) -> None:
    """Write the programs that ask this server for a fork: `edgen`, and `python` for edgen's modules."""
    text = Path(__file__).with_name("forked_edgen.py").read_text()
    for name in ("edgen", "python"):
        program = folder / name
        program.write_text(f"#!{sys.executable} -ISs\n{text}")
        program.chmod(0o755)


def _load() -> None:
    gc.disable()  # imported modules stay
    import typer.main

    import edgen

    for module in pkgutil.walk_packages(edgen.__path__, "edgen."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(Exception):  # it needs a missing extra
                importlib.import_module(module.name)
    from edgen.cli.app import app

    typer.main.get_command = functools.cache(typer.main.get_command)
    [*typer.main.get_command(app).commands.values()]  # each is built at its first look-up
    _parse_once()
    _warm_up()
    gc.collect()
    gc.freeze()
    gc.enable()


def _parse_once() -> None:
    """Let edgen's readers of YAML find the values of texts that were parsed before.

    Most commands read the same jobs and spaces. Each reader gets values of its own, so that changes do not
    spread. Invalid texts are parsed each time.
    """
    from edgen.core import yaml_values

    parse = yaml_values.read_values

    @functools.lru_cache(200)
    def parse_and_pickle(text: str) -> bytes:
        return pickle.dumps(parse(text), pickle.HIGHEST_PROTOCOL)

    def read(text: str) -> Any:
        return pickle.loads(parse_and_pickle(text))

    yaml_values.read_values = read  # type: ignore[assignment]


def _warm_up() -> None:
    """Fill the caches that commands fill first: entry points, shipped templates, the simulator's tables."""
    import edgen

    with tempfile.TemporaryDirectory() as folder:
        for name in ("quickstart", "selfplay"):
            edgen.generate(ROOT / "jobs" / f"{name}.yaml", conversations=1, output=Path(folder, name))
        edgen.open(Path(folder, "quickstart")).stats()


_NEEDED = {  # by words of a command: this doubles the time, so only if there are any
    "batch": ("anthropic", "google.genai", "openai"),
    "report": ("matplotlib.backends.backend_svg", "matplotlib.figure"),
}


@functools.cache
def _load_needed(word: str) -> None:
    for module in _NEEDED[word]:
        with contextlib.suppress(ImportError):  # the command itself reports what is missing
            importlib.import_module(module)
    if word == "batch":
        _warm_up_batches()
    gc.freeze()


def _warm_up_batches() -> None:
    """Make the vendors' SDKs build what they build at their first call: half a second of each process."""
    import edgen

    reads, writes = os.pipe()
    if not (simulator := os.fork()):
        try:
            _simulate(writes)
        finally:
            os._exit(0)
    url = os.read(reads, 100).decode()
    places = {"openai": f"{url}/v1", "gemini": url, "anthropic": url}
    try:
        with tempfile.TemporaryDirectory() as folder:
            for kind, place in places.items():
                backend = {"type": kind, "model": f"{kind}-m", "base_url": place, "max_tokens": 3000}
                with contextlib.suppress(edgen.errors.EdgenError):  # a missing extra
                    edgen.generate(
                        ROOT / "jobs" / "quickstart.yaml", conversations=1, output=Path(folder, kind), via="batch",
                        batch={"poll": "0.2s"}, backends={"default": backend}, progress=False,
                    )  # fmt: skip
    finally:
        os.kill(simulator, signal.SIGKILL)
        os.waitpid(simulator, 0)
        os.close(reads)
        os.close(writes)


def _simulate(announced: int) -> None:
    from edgen.simulator.options import ServerOptions
    from edgen.simulator.service.server import serve

    def announce(address: str) -> None:
        os.write(announced, address.encode())

    asyncio.run(serve(ServerOptions(port=0, batch_seconds=0), announce))


@contextlib.contextmanager
def _listening(address: Path) -> Iterator[socket.socket | None]:
    """Listen at an address until the end; None if another server does."""
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(str(address))
        except OSError:
            yield None
            return
        _write_programs(address.parent)
        listener.listen()
        here = os.getpid()
        try:
            yield listener
        finally:
            if os.getpid() == here:  # and this is no fork
                shutil.rmtree(address.parent, ignore_errors=True)


def _serve(listener: socket.socket) -> dict[str, Any] | None:
    """Fork for each request until no process is left that may ask; in a fork, return the request."""
    woken, wake = socket.socketpair()
    for each in (woken, wake):
        each.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, _Fork] = {}
    selector = selectors.DefaultSelector()
    for each in (listener, woken):
        selector.register(each, selectors.EVENT_READ)
    asking: set[socket.socket] = set()
    while True:
        ready = {key.fileobj for key, _ in selector.select(None if asking else 120)}
        if woken in ready:
            woken.recv(4096)
            _reap(running)
        if listener in ready:
            asking.add(control := listener.accept()[0])
            selector.register(control, selectors.EVENT_READ)
        for control in asking & ready:
            if (received := _receive(control)) is None:
                selector.unregister(control)
                asking.remove(control)
                control.close()
                for pid in [pid for pid, fork in running.items() if fork.control is control]:
                    os.kill(pid, signal.SIGKILL)
                continue
            wanted, given = received
            for word in _NEEDED.keys() & set(wanted["arguments"]):
                _load_needed(word)
            status = socket.socket(fileno=given[0])
            if pid := os.fork():
                for file in given[1:]:
                    os.close(file)
                running[pid] = _Fork(control, status)
                _tell(status, pid.to_bytes(4, "big"))
                continue
            signal.set_wakeup_fd(-1)
            selector.close()
            for each in (listener, woken, wake, status, *asking, *(fork.status for fork in running.values())):
                each.close()
            _become(wanted, given[1:])
            return wanted
        if not asking:
            return None


class _Fork(NamedTuple):
    """A running fork: the connection that requested it, and the socket that reports its end."""

    control: socket.socket
    status: socket.socket


def _receive(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Receive a request and the files of its fork; None once the requesting process has ended."""
    with contextlib.suppress(ConnectionError):
        length, given, *_ = socket.recv_fds(control, 4, 4)
        size = int.from_bytes(length, "big")
        if size and len(request := control.recv(size, socket.MSG_WAITALL)) == size:
            return json.loads(request), given
    return None


def _reap(running: dict[int, _Fork]) -> None:
    while running:
        pid, code = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        status = running.pop(pid).status
        _tell(status, str(os.waitstatus_to_exitcode(code)).encode())
        status.close()


def _tell(status: socket.socket, words: bytes) -> None:
    with contextlib.suppress(OSError):  # a test that ended at once waits for nothing
        status.send(words)


def _become(wanted: dict[str, Any], files: Sequence[int]) -> None:
    """Set a command's files, directory, environment and signals: those of a person at a terminal."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.__stdin__ = sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - by number
    sys.__stdout__ = sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - by number
    sys.__stderr__ = sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    use_default_signals()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(wanted["cwd"])
    os.environ.clear()
    os.environ.update(wanted["environ"])
    tempfile.tempdir = None  # it is searched again, in this environment
    for what, most in wanted["limits"]:
        resource.setrlimit(what, (most, most))


def run_each() -> None:
    """Run the commands that come over standard input, one after another, and send their codes back."""
    channel = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    while (received := _receive(channel)) is not None:
        wanted, files = received
        _become(wanted, files)
        code = _execute(wanted)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number in range(3):
            os.dup2(nothing, number)
        channel.sendall(str(code).encode())


def _execute(wanted: dict[str, Any]) -> int:
    """Run the request and return its exit code."""
    sys.argv = ["-c", *wanted["arguments"]]
    code: object = 0
    try:
        if wanted["code"] is None:
            warnings.simplefilter("ignore", RuntimeWarning)  # the module is imported already, like all others
            module = wanted.get("module", "edgen")
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        else:
            exec(compile(wanted["code"], "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - as Python's own end shows it
        code = 1
        traceback.print_exc()
    return code if isinstance(code, int) else int(code is not None)


def _run(wanted: dict[str, Any]) -> None:
    """Run the request and end at once.

    Freeing all of Python's imports would take longer than most commands.
    """
    code = _execute(wanted)
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _main(address: Path) -> None:
    os.setsid()
    with _listening(address) as listener:
        if listener is not None:  # requests during the imports wait
            _load()
            if (wanted := _serve(listener)) is not None:
                sys.executable = str(address.with_name("python"))
                _run(wanted)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
