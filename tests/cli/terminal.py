"""A command at a terminal, with a person who answers its questions."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import fork_server


def at_terminal(
    arguments: Sequence[str | Path],
    answer: str = "",
    *,
    interrupt: bool = False,
    code: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Run `edgen`, or code, at a terminal; return the exit code and the terminal's text. A question gets the
    answer, or an interrupt: a terminal would send it to the foreground group, which is missing here."""

    async def work() -> tuple[int, str]:
        ours, theirs = pty.openpty()
        environ = {**os.environ, "TERM": "dumb", **(env or {})}
        process = await fork_server.start(*arguments, code=code, cwd=cwd, env=environ, terminal=theirs)
        os.close(theirs)
        shown, asked = b"", False
        with contextlib.suppress(OSError):  # the terminal ends with the process
            while more := await asyncio.to_thread(os.read, ours, 4096):
                shown += more
                if b"[y/N]" in shown and not asked:
                    asked = True
                    process.send_signal(2) if interrupt else os.write(ours, answer.encode())
        ended = await process.wait()
        os.close(ours)
        return ended, shown.decode(errors="replace")

    return asyncio.run(asyncio.wait_for(work(), 60))
