"""Files, locks, processes, signals, limits and threads of the operating system, and folders of packages.

No other module names a system, or a call that only some systems have.

Linux and macOS support everything. Windows lacks locks that end with their holder, so edgen writes no runs
there: it reads, checks, exports and compares runs that were made elsewhere.
"""

from __future__ import annotations

import contextlib
import contextvars
import errno
import os
import re
import signal
import site
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from edgen.core.errors import UsageError

if TYPE_CHECKING:
    import asyncio

fcntl: ModuleType | None
resource: ModuleType | None
try:
    import fcntl
    import resource
except ImportError:  # Windows
    fcntl = resource = None

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Open files in place: follow no link, wait for no pipe, pass none to a child, change no byte.
AS_IT_IS = 0
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"):
    AS_IT_IS |= getattr(os, _name, 0)
_OPENS_LINKS = not hasattr(os, "O_NOFOLLOW")

# The signals of this system that ask a process to end.
ENDING_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
ALARM: int | None = getattr(signal, "SIGALRM", None)  # the signal of a timer, where there is one


# --- files --------------------------------------------------------------------------------------


def open_no_follow(path: Path, flags: int) -> int:
    """Open a file in place and return its number. Raises OSError (ELOOP) for a link."""
    if _OPENS_LINKS and path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return os.open(path, flags | AS_IT_IS, 0o666)


def may_write(folder: Path) -> bool:
    """Return whether this process may create files in a folder with its present rights."""
    return os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def open_folder(path: Path) -> int:
    """Open a folder and return its number. Raises OSError if the system cannot open folders."""
    if not hasattr(os, "O_DIRECTORY"):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), str(path))
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def link_new(existing: Path, name: Path) -> None:
    """Give a file a second name. Raises FileExistsError if the name is taken, OSError if there are no hard
    links."""
    try:
        os.link(existing, name, follow_symlinks=False)
    except NotImplementedError:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), str(name)) from None


# --- locks --------------------------------------------------------------------------------------


def require_locks() -> None:
    """Raise UsageError on a system without locks that end with their holder."""
    if fcntl is None:
        raise UsageError(
            "this command writes a run, and edgen writes runs on Linux and macOS only. On Windows, start it "
            "in WSL. Reading, checking, exporting and comparing runs work here."
        )


def try_lock(number: int, *, shared: bool = False) -> None:
    """Lock an open file without waiting, exclusively or shared with other readers. The lock ends with the
    process.

    Raises BlockingIOError if another process holds it, OSError if its disk or this system has no locks. On
    systems where no process can write runs, a shared lock does nothing.
    """
    if fcntl is not None:
        fcntl.flock(number, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    elif not shared:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))


# --- processes, signals and limits --------------------------------------------------------------


def interrupt(process: int) -> None:
    """Interrupt a process, as Ctrl-C does. Raises OSError where it cannot be."""
    os.kill(process, signal.SIGINT)


def edit_lines() -> None:
    """Have `input` edit lines, where the system's Python can."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - the import has the effect


_BLOCKED = 1.0  # seconds


@contextlib.contextmanager
def handle_signals(
    loop: asyncio.AbstractEventLoop, signals: Iterable[int], handler: Callable[[int], None]
) -> Iterator[None]:
    """Let a loop call `handler` with the number of each of these signals; restore the earlier handlers
    afterwards. If other code has blocked the loop for a second after a signal, the next signal raises
    KeyboardInterrupt in that code."""
    unheard: list[float] = []  # times of signals that the loop has not handled yet

    def hear(number: int) -> None:
        unheard.clear()
        handler(number)

    def interrupt_blocked(_number: int, _frame: FrameType | None) -> None:
        unheard.append(time.monotonic())
        if unheard[-1] - unheard[0] > _BLOCKED:
            raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in signals}
    with _pause_signals():  # a signal must not meet some old and some new handlers
        for number in before:
            try:
                loop.add_signal_handler(number, hear, number)
                signal.signal(number, interrupt_blocked)  # the loop still gets the signal by its own pipe
                signal.siginterrupt(number, False)
            except NotImplementedError:  # a loop on Windows
                signal.signal(number, lambda came, _: _hand_over(loop, handler, came))
    try:
        yield
    finally:
        with _pause_signals():
            for number, old in before.items():
                with contextlib.suppress(NotImplementedError):
                    loop.remove_signal_handler(number)
                signal.signal(number, old)


@contextlib.contextmanager
def _pause_signals() -> Iterator[None]:
    release = hold_signals()
    try:
        yield
    finally:
        release()


def _hand_over(loop: asyncio.AbstractEventLoop, handler: Callable[[int], None], number: int) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
        loop.call_soon_threadsafe(handler, number)


def hold_signals() -> Callable[[], None]:
    """Block ending signals in this thread until the returned function is called. It may be called twice."""
    if not hasattr(signal, "pthread_sigmask"):
        return lambda: None
    held = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)

    def release() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)

    return release


@contextlib.contextmanager
def set_alarm(seconds: float, handler: Callable[[FrameType | None], None]) -> Iterator[None]:
    """Call `handler` with the running frame after so many seconds, then every second, until the body ends; it
    may raise. Do nothing outside of the main thread, and on a system without timers."""
    if ALARM is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(ALARM, lambda _number, frame: handler(frame))
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(ALARM, before)


_HANDLERS = ("asyncio.", "signal", "edgen.core.system", "edgen.cli.output")  # modules that handle signals


def is_from_signal(error: BaseException) -> bool:
    """Return whether an error comes from a signal such as Ctrl-C, and not from a `raise` in code."""
    from opcode import opmap  # only an interrupted command needs it

    trace = error.__traceback__
    if not isinstance(error, KeyboardInterrupt) or trace is None:
        return isinstance(error, KeyboardInterrupt)
    while trace.tb_next is not None:
        trace = trace.tb_next
    # Python's own handler has no frame: the error comes out of any instruction but `raise`.
    raised = trace.tb_frame.f_code.co_code[trace.tb_lasti] == opmap["RAISE_VARARGS"]
    return not raised or str(trace.tb_frame.f_globals.get("__name__", "")).startswith(_HANDLERS)


def is_hangup(number: int) -> bool:
    """Return whether a signal reports a closed terminal."""
    return number == getattr(signal, "SIGHUP", None)


def kill_with_children(pid: int) -> None:
    """End a process that leads its own group, and all that it started, as far as this system can."""
    if hasattr(os, "killpg"):
        os.killpg(pid, signal.SIGKILL)
    else:
        os.kill(pid, signal.SIGTERM)


def limit_open_files(needed: int, least: int) -> int | None:
    """Allow this process `needed` open files, or as many as possible; return that number if it is below
    `least`."""
    if resource is None:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return None
    if hard != resource.RLIM_INFINITY and hard < least:
        return int(hard)
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return None


_CGROUP_MEMORY = Path("/sys/fs/cgroup/memory.max")  # of a container: a number of bytes, or "max"


def memory_size() -> int | None:
    """Return the bytes of memory that this process can have: the machine's, or its container's if that is
    less. None if the system does not say."""
    sizes = []
    with contextlib.suppress(OSError, ValueError):
        sizes.append(int(_CGROUP_MEMORY.read_text()))
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min((size for size in sizes if size > 0), default=None)


# --- threads ------------------------------------------------------------------------------------


async def run_in_thread(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run a function in a thread and return its result, as `asyncio.to_thread` does, but wait for the thread
    even if cancelled: it may still use what the caller closes afterwards, such as a ledger or a lock."""
    import asyncio  # only work in a loop needs it

    context = contextvars.copy_context()
    # Not a task: the end of a loop cancels tasks, but not threads.
    running = asyncio.get_running_loop().run_in_executor(None, lambda: context.run(work, *args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()  # retrieve it, so that asyncio does not warn
        raise cancelled
    return running.result()


# --- folders of the path that hold installed packages, for `edgen.core.registry`

_HERE = Path(__file__).resolve().parents[2]


def split_path(path: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """Split the entries of `sys.path`: folders that hold installed packages, and the others, each once."""
    sites = [*site.getsitepackages(), site.getusersitepackages()]
    known = {_HERE, *map(_resolve_folder, sites)}
    known |= {
        _resolve_folder(one)
        for one in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if _is_absolute(one)
    }
    named: set[Path] | None = None  # read only if some folder is not known yet
    installed: dict[Path, None] = {}
    others: dict[Path, None] = {}
    for entry in path:
        folder = _resolve_folder(entry)
        if not _is_absolute(entry) or not folder.is_dir():
            trusted = False
        elif not (trusted := folder in known):
            named = _read_pth_files(sites) if named is None else named
            trusted = folder in named
        (installed if trusted else others)[folder] = None
    return [*installed], [folder for folder in others if folder not in installed]


def _is_absolute(entry: str) -> bool:
    return Path(entry).is_absolute()


def _resolve_folder(entry: str) -> Path:
    return Path(entry or ".").resolve()


def _read_pth_files(sites: Sequence[str]) -> set[Path]:
    """Return the folders named in `.pth` files of the site folders: as a line, or in quotes in a line of
    code."""
    found: set[Path] = set()
    for folder in map(Path, sites):
        for file in sorted(folder.glob("*.pth")):
            try:
                text = file.read_text(encoding="utf-8-sig")
            except (OSError, ValueError):
                continue
            for line in filter(None, map(str.strip, text.splitlines())):
                is_code = line.startswith(("import ", "import\t"))
                parts = re.findall(r"'([^']+)'|\"([^\"]+)\"", line) if is_code else [(line, "")]
                named = [single or double for single, double in parts]
                found |= {(folder / one).resolve() for one in named if not is_code or _is_absolute(one)}
    return found
