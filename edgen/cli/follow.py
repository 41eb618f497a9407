"""`edgen status --watch`: a run followed from another terminal, until nobody works on it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from edgen.cli.output import note, print_json_line, print_line, safe
from edgen.cli.status import facts_of, status_lines
from edgen.durations import span
from edgen.errors import RunError
from edgen.rundir import RunDir

_EVERY = 1.0  # seconds between two looks
Show = Callable[[dict[str, Any]], None]


def follow(rundir: RunDir, *, json: bool) -> None:
    """Show the run's facts whenever they change. Returns when nobody works on it; waits for one to be begun.

    Raises RunError for what is no run, and where a ledger cannot be read.
    """
    if not rundir.exists:
        if rundir.path.exists() and not rundir.path.is_dir():
            rundir.require()
        note(f"edgen: {rundir.path}: no run was begun here yet; waiting for one (Ctrl-C ends this).")
    before = None
    with _shown(json=json) as show:
        while True:
            held = rundir.is_held()  # looked at first: what it wrote before it let go is seen below
            facts = _facts(rundir, held=held)
            if facts is not None and (facts != before or not held):
                show(facts)
                before = facts
            if facts is not None and not held:
                return
            time.sleep(_EVERY)


def _facts(rundir: RunDir, *, held: bool) -> dict[str, Any] | None:
    """The run's facts, None while its ledger is being made."""
    if not rundir.exists:
        return None
    try:
        return facts_of(rundir, held=held)
    except RunError:
        if held:
            return None
        raise


@contextlib.contextmanager
def _shown(*, json: bool) -> Iterator[Show]:
    """How facts are shown: a JSON object a line, a screen that changes in place, or a line a change."""
    import sys

    if json:
        yield print_json_line
    elif sys.stdout.isatty():
        with _screen() as show:
            yield show
    else:
        speed = _Speed()
        yield lambda facts: print_line(_line(facts, speed(facts)))


@contextlib.contextmanager
def _screen() -> Iterator[Show]:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    speed = _Speed()
    with Live(console=Console(), auto_refresh=False) as live:

        def show(facts: dict[str, Any]) -> None:
            lines = status_lines(facts)
            if told := speed(facts):
                lines.append(f"speed      {told}")
            live.update(Text(safe("\n".join(lines)), overflow="fold"), refresh=True)

        yield show


def _line(facts: dict[str, Any], speed: str) -> str:
    """How it stands, in a line with the time of day."""
    parts = [
        f"{time.strftime('%H:%M:%S')} {facts['state']}: {_ended(facts)}/{facts['planned']}",
        f"{facts['accepted']} accepted",
        f"{sum(facts['rejected'].values())} rejected",
        f"{sum(facts['failed'].values())} failed",
        f"{facts['calls']['made']} calls",
    ]
    if facts["cost_usd"] is not None:
        parts.append(f"${facts['cost_usd']:.4f}")
    batches = [
        b for run in (facts, *(facts.get("arms") or {}).values()) for b in (run or {}).get("batches", ())
    ]
    if batches:
        parts.append(
            f"{sum(batch['requests'] for batch in batches):,} requests out in {len(batches)} batches"
        )
    return " · ".join([*parts, speed] if speed else parts)


def _ended(facts: dict[str, Any]) -> int:
    return int(facts["planned"] - facts["pending"])


class _Speed:
    """Conversations a second since the first look, and how long the rest will take at that."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None

    def __call__(self, facts: dict[str, Any]) -> str:
        now = time.monotonic()
        if self._first is None:
            self._first = now, _ended(facts)
        passed, made = now - self._first[0], _ended(facts) - self._first[1]
        if made <= 0 or facts["state"] != "running":
            return ""
        return f"{made / passed:.1f}/s, {span(facts['pending'] * passed / made)} left"
