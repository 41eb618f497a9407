"""`edgen` in a shell of the tests: asks the server of forks for one that has this process' files, and ends with its code."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

if __name__ == "__main__":
    passed_on = (signal.SIGINT, signal.SIGTERM)
    # The fork may say something, and be signalled for it, before this process knows its number.
    signal.pthread_sigmask(signal.SIG_BLOCK, passed_on)
    control = socket.socket(fileno=int(os.environ["EDGEN_FORKS"]))
    status, theirs = socket.socketpair()
    wanted = {
        "arguments": sys.argv[1:],
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
    for number in passed_on:
        signal.signal(number, lambda number, _: os.kill(process, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, passed_on)
    for file in (0, 1):  # whoever reads from a pipe, or writes to it, has to do with the fork alone
        os.close(file)
    code = int(status.recv(100) or -9)
    os._exit(code if code >= 0 else 128 - code)
