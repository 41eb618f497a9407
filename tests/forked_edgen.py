"""Two programs of the tests that ask the server of forks for a process with their files, and end as it does.

`edgen` is edgen in a shell. `python` is the Python of a fork: to run a module of edgen, it becomes a fork,
too; else it becomes Python.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys

PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def find_module(path: str, words: list[str]) -> str | None:
    """Return the module that a fork must run; None if this is Python, for anything else."""
    if os.path.basename(path) == "edgen":
        return "edgen"
    return words[2] if words[:2] == ["-P", "-m"] and words[2].startswith("edgen.") else None


def pass_on(process: int, number: int) -> None:
    """Send a signal to the fork, unless it has ended and its code is not read yet."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


if __name__ == "__main__":
    path, *words = sys.argv
    module = find_module(path, words)
    if module is None:
        os.execv(sys.executable, [sys.executable, *words])
    # The fork may print, and be signalled for it, before this process knows its number.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    control = socket.socket(socket.AF_UNIX)
    control.connect(os.path.join(os.path.dirname(path), "socket"))
    status, theirs = socket.socketpair()
    wanted = {
        "arguments": words if module == "edgen" else words[3:],
        "module": module,
        "code": None,
        "cwd": os.getcwd(),
        "environ": dict(os.environ),
        "limits": [],
    }
    request = json.dumps(wanted).encode()
    socket.send_fds(control, [len(request).to_bytes(4, "big")], [theirs.fileno(), 0, 1, 2])
    control.sendall(request)
    theirs.close()
    process = int.from_bytes(status.recv(4), "big")
    for number in PASSED_ON:
        signal.signal(number, lambda number, _: pass_on(process, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    for file in (0, 1):  # processes that use the pipe depend on the fork alone
        os.close(file)
    code = int(status.recv(100) or -signal.SIGKILL)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
