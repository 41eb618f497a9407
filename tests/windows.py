"""Make this process behave as on Windows, as far as a POSIX system can.

Modules, functions, flags and signals that Windows lacks are removed. Operations that it refuses are refused:
a link, a folder as a file, another name for an open file, a name with a colon. Text files are written with
its encoding and its line ends. Import libraries before the call: they are not changed.
"""

from __future__ import annotations

import asyncio
import builtins
import errno
import io
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

MODULES = {
    "fcntl",
    "resource",
    "pwd",
    "grp",
    "termios",
    "tty",
    "pty",
    "readline",
    "syslog",
    "posix",
    "curses",
}
OS = [
    "O_NOFOLLOW",
    "O_DIRECTORY",
    "O_NONBLOCK",
    "O_CLOEXEC",
    "O_SYNC",
    "O_NOCTTY",
    "chown",
    "fchmod",
    "fchown",
    "lchown",
    "chroot",
    "mkfifo",
    "mknod",
    "fork",
    "forkpty",
    "openpty",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getgroups",
    "getpgid",
    "getpgrp",
    "getsid",
    "setsid",
    "setuid",
    "setgid",
    "setresuid",
    "killpg",
    "nice",
    "statvfs",
    "fstatvfs",
    "uname",
    "sched_getaffinity",
    "sched_setaffinity",
    "sync",
    "fdatasync",
    "pread",
    "pwrite",
    "sendfile",
    "getloadavg",
    "register_at_fork",
    "wait",
    "wait3",
    "wait4",
    "posix_fallocate",
    "posix_fadvise",
    "posix_spawn",
    "ctermid",
    "sysconf",
    "confstr",
    "lockf",
    "tcgetpgrp",
    "WNOHANG",
    "WIFEXITED",
    "getxattr",
    "setxattr",
]
SIGNALS = [
    "SIGHUP",
    "SIGKILL",
    "SIGQUIT",
    "SIGUSR1",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGCHLD",
    "SIGSTOP",
    "SIGTSTP",
    "SIGCONT",
    "SIGWINCH",
    "pthread_sigmask",
    "pthread_kill",
    "sigwait",
    "sigpending",
    "siginterrupt",
    "alarm",
    "setitimer",
    "getitimer",
]
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


class Missing:
    """A finder that finds none of the modules that Windows lacks."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def become() -> None:
    """Remove and refuse what Windows does; this cannot be undone."""
    _change_files()
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Missing())  # type: ignore[arg-type]
    for name in OS:
        if hasattr(os, name):
            delattr(os, name)
    for name in SIGNALS:
        if hasattr(signal, name):
            delattr(signal, name)
    del time.tzset
    for name in ("supports_dir_fd", "supports_fd", "supports_effective_ids"):
        setattr(os, name, set())
    os.supports_follow_symlinks = {os.stat}
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    handle = signal.signal

    def set_handler(number: int, handler: Any) -> Any:
        if number not in (signal.SIGINT, signal.SIGTERM, signal.SIGABRT):
            raise ValueError("invalid signal value")
        return handle(number, handler)

    signal.signal = set_handler  # type: ignore[assignment]

    def unsupported(*_: object) -> NoReturn:
        raise NotImplementedError

    for loop in (asyncio.AbstractEventLoop, asyncio.SelectorEventLoop):
        loop.add_signal_handler = unsupported  # type: ignore[assignment]
        loop.remove_signal_handler = unsupported  # type: ignore[assignment]
    sys.platform = "win32"


def _change_files() -> None:
    """Open, name and remove files as on Windows."""
    read_link, list_folder, is_folder = os.readlink, os.listdir, os.path.isdir

    def check_name(path: object) -> None:
        if isinstance(path, int):
            return
        for part in Path(os.fsdecode(path)).parts[1:]:  # type: ignore[arg-type]
            if re.search(r'[<>:"|?*\x00-\x1f]', part) or RESERVED.match(part) or part.endswith((" ", ".")):
                raise OSError(errno.EINVAL, "Invalid argument", os.fsdecode(path))  # type: ignore[arg-type]

    def check_closed(path: object) -> None:
        place = os.path.realpath(os.fsdecode(path))  # type: ignore[arg-type]
        for number in list_folder("/proc/self/fd"):
            try:
                found = read_link(f"/proc/self/fd/{number}")
            except OSError:
                continue
            if found == place:
                raise PermissionError(errno.EACCES, "The process cannot access the file", place)

    def refusing(call: Any, *, names: int, closed: int) -> Any:
        def changed(*paths: Any, **how: Any) -> Any:
            if {"dir_fd", "src_dir_fd", "dst_dir_fd", "effective_ids"} & {
                key for key, one in how.items() if one
            }:
                raise NotImplementedError(f"{call.__name__}: {how} unavailable on this platform")
            if call.__name__ == "link" and "follow_symlinks" in how:
                raise NotImplementedError("link: follow_symlinks unavailable on this platform")
            if call.__name__ == "open" and is_folder(paths[0]):
                raise PermissionError(errno.EACCES, "Permission denied", os.fsdecode(paths[0]))
            for path in paths[:names]:
                check_name(path)
            for path in paths[:closed]:
                check_closed(path)
            return call(*paths, **how)

        return changed

    plain = io.open

    def open_as_there(
        file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, errors: str | None = None,
        newline: str | None = None, closefd: bool = True, opener: Any = None,
    ) -> Any:  # fmt: skip
        check_name(file)
        if "b" not in mode and not isinstance(file, int):
            encoding = encoding or "cp1252"
            if newline is None and set(mode) & {"w", "a", "x"}:
                newline = "\r\n"
        return plain(file, mode, buffering, encoding, errors, newline, closefd, opener)

    builtins.open = io.open = open_as_there  # type: ignore[assignment]
    for name, names, closed in (
        ("open", 1, 0), ("mkdir", 1, 0), ("access", 0, 0), ("stat", 0, 0), ("link", 2, 0),
        ("rename", 2, 2), ("replace", 2, 2), ("unlink", 1, 1), ("remove", 1, 1),
    ):  # fmt: skip
        setattr(os, name, refusing(getattr(os, name), names=names, closed=closed))
