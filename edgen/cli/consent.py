"""Asking a person on the terminal; before something is undone or paid for again, `--yes` answers as well."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable

from edgen.cli.output import safe
from edgen.errors import UsageError


def require_consent(losses: Iterable[object], *, yes: bool) -> None:
    """Return if there is nothing to agree to, or the person agrees. Raises UsageError if not, or where nobody can
    be asked. Each loss reads as a sentence."""
    sentences = " ".join(str(loss) for loss in losses)
    if not sentences or yes:
        return
    if somebody_there():
        if ask(f"{sentences}\nGo on?"):
            return
        raise UsageError("Nothing was changed. Choose another run folder with -o to keep both.")
    raise UsageError(
        f"{sentences} Nothing was changed. Say --yes to go on, or choose another run folder with -o to keep both."
    )


def somebody_there() -> bool:
    """Whether a person can be asked: they see what is asked, and can type."""
    try:
        return sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):  # closed, or taken away
        return False


def ask(question: str) -> bool:
    """A person's yes or no. An interrupt ends the command, also where a loop runs that would wait for it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.stderr.write(f"{safe(question)} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    finally:
        signal.signal(signal.SIGINT, before)
