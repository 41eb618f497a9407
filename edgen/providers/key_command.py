"""Sources of keys that expire, and one such source: a command that prints a key. The command runs directly,
never through a shell.

Its output is never shown, even if it fails, since it may contain the key.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Mapping, Sequence

from edgen.core.errors import CallError, FailureKind
from edgen.core.system import kill_with_children

PATIENCE = 60.0  # seconds that a command may take
_MOST = 64 * 1024  # most bytes of a key


class KeySource:
    """A source that gets a key on demand: before the first call, and after a refusal."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._last: str | None = None

    async def key_after(self, refused: str | None) -> str:
        """Return a key newer than `refused`; concurrent calls share it. Raises CallError."""
        async with self._lock:
            if self._last is None or self._last == refused:
                self._last = await self._fetch_key()
            return self._last

    async def _fetch_key(self) -> str:
        raise NotImplementedError


class KeyCommand(KeySource):
    """A key source that runs `command`, a program and its arguments, in the environment `environ`."""

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], patience: float = PATIENCE
    ) -> None:
        super().__init__()
        self._command = tuple(command)
        self._environ = dict(environ)
        self._patience = patience

    async def _fetch_key(self) -> str:
        """Run the command. Raises CallError if it fails, takes too long, or prints anything but one line."""
        lines = (await self._read_output()).decode("ascii", "replace").strip().splitlines()
        if len(lines) != 1:
            raise self._make_command_error(f"printed {len(lines) or 'no'} lines, and a key is one")
        if not (lines[0].isascii() and lines[0].isprintable() and " " not in lines[0]):
            raise self._make_command_error("printed something with characters that no key has")
        return lines[0]

    async def _read_output(self) -> bytes:
        """Return the command's output. On timeout, end it and all processes that it started."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=self._environ,
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "strerror", None) or "it holds a character that no command has"
            raise self._make_command_error(f"cannot be started ({reason})") from None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(self._patience):
                printed = await process.stdout.read(_MOST)
                while len(printed) < _MOST and (more := await process.stdout.read(_MOST)):
                    printed += more
                if len(printed) >= _MOST:
                    raise self._make_command_error("printed more than a key has")
                status = await process.wait()
        except TimeoutError:
            raise self._make_command_error(f"printed no key within {self._patience:g} s") from None
        finally:
            await _end(process)
        if status != 0:
            raise self._make_command_error(f"ended with {status}")
        return printed

    def _make_command_error(self, what: str) -> CallError:
        return CallError(
            FailureKind.AUTHENTICATION,
            f"the key_command {what}; run it yourself to see why: {shlex.join(self._command)[:200]}",
            unsent=True,
        )


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a running process and its children."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill_with_children(process.pid)
        await process.wait()
