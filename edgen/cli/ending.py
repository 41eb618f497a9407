"""Who is told how the command ended, beside the shell: its log, its metrics file."""

from __future__ import annotations

from collections.abc import Callable

# An exit code, the sentence that goes with it, and the traceback of a bug.
# Whether it has said so, in place of a line on stderr.
Ending = Callable[[int, str | None, str | None], bool]

_endings: list[Ending] = []


def at_end(tell: Ending) -> None:
    """Have `tell` called once, when the command that runs now has ended. It must not raise."""
    _endings.append(tell)


def ended(code: int, text: str | None, trace: str | None) -> bool:
    """The command has ended; whether somebody has said so."""
    told = _endings[:]
    _endings.clear()
    said = [tell(code, text, trace) for tell in told]  # all of them are told
    return any(said)
