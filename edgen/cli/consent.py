"""Asking a person before something is undone or paid for again: `--yes`, or a yes on the terminal."""

from __future__ import annotations

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
    if sys.stdin.isatty() and sys.stderr.isatty():
        sys.stderr.write(f"{safe(sentences)}\nGo on? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
        raise UsageError("Nothing was changed. Choose another run folder with -o to keep both.")
    raise UsageError(
        f"{sentences} Nothing was changed. Say --yes to go on, or choose another run folder with -o to keep both."
    )
