"""Progress on stderr: a bar or a line that changes where a person looks, plain lines where a log is kept."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from edgen.cli.output import note, safe
from edgen.durations import span

if TYPE_CHECKING:
    from edgen.cli.watched import Watched
    from edgen.engine.session import AnyDriver
    from edgen.engine.tally import Tally
    from edgen.events import Event

UNREADABLE = (OSError, ValueError)  # stderr is closed, full or gone
_BAR_EVERY = 0.25  # seconds
_LINE_EVERY = 10.0


@contextlib.asynccontextmanager
async def progress(
    tally: Tally,
    name: str,
    driver: AnyDriver,
    words: tuple[str, str] = ("accepted", "rejected"),
    watched: Watched | None = None,
) -> AsyncIterator[Display]:
    """Show `tally` while the body runs, and once more at its end; `words` name its two outcomes. `watched`: it
    may have a log to be told in place of a display."""
    display: Display
    if watched is not None and watched.logged:
        display = _Logged(tally, name, driver, watched)
    else:
        display = (_Bar if sys.stderr.isatty() else _Lines)(tally, name, driver)
    display.words = words
    display.refresh()
    task = asyncio.create_task(display.follow())
    try:
        yield display
    finally:
        task.cancel()
        with contextlib.suppress(*UNREADABLE):
            display.close()


class Display:
    """What both displays share: the figures, and the rate since the start."""

    every = _LINE_EVERY
    words = ("accepted", "rejected")

    def __init__(self, tally: Tally, name: str, driver: AnyDriver) -> None:
        self.tally = tally
        self.name = name
        self.driver = driver
        self.stage = ""
        self._started = time.monotonic()
        self._next_done = 0.0
        self._before = tally.ended - tally.kept

    def show(self) -> None:
        """Print the state of this moment."""

    def close(self) -> None:
        """Print the last state and leave the terminal as it was."""

    def say(self, stage: str) -> None:
        """Show what is being done after the last answer."""
        self.stage = stage
        self.refresh()

    def note(self, text: str) -> None:
        """Print a remark without breaking the display."""
        note(text)

    def event(self, event: Event) -> None:
        """Print what the engine says happens; of how far batches are, a line now and then."""
        if "done" in event.facts:
            now = time.monotonic()
            if now < self._next_done:
                return
            self._next_done = now + _LINE_EVERY
        self.note(event.text)

    def refresh(self) -> None:
        """Show, if anybody can see it: a terminal that went away is no reason to stop the work."""
        with contextlib.suppress(*UNREADABLE):
            self.show()

    async def follow(self) -> None:
        while True:
            await asyncio.sleep(self.every)
            self.refresh()

    def rate(self) -> float:
        """Outcomes a second since the start, what earlier sessions settled left out."""
        seconds = time.monotonic() - self._started
        return (self.tally.ended - self.tally.kept - self._before) / seconds if seconds > 0 else 0.0

    def left(self) -> str:
        """How long it will take, or what is being done after the last answer."""
        rate = self.rate()
        if self.stage:
            return self.stage
        return f"{span(self.tally.pending / rate)} left" if rate > 0 and self.tally.pending else ""

    def figures(self) -> str:
        tally = self.tally
        parts = [
            f"{self.rate():.1f}/s",
            f"{tally.accepted} {self.words[0]}",
            f"{tally.rejected.total()} {self.words[1]}",
            f"{self.driver.in_flight} in flight",
            f"{short(tally.prompt_tokens + tally.completion_tokens)} tokens",
        ]
        if tally.failed:
            parts.append(f"{tally.failed.total()} failed")
        if tally.retried:
            parts.append(f"{tally.retried} retried")
        if (pause := self.driver.paused_for) > 1:
            parts.append(f"told to wait {span(pause)}")
        if tally.cost_usd is not None:
            parts.append(money(tally.cost_usd))
        return " · ".join(parts)


class _Lines(Display):
    def show(self) -> None:
        left = f" · {self.left()}" if self.left() else ""
        self.note(f"{self.name}: {self.tally.ended}/{self.tally.planned} · {self.figures()}{left}")

    def close(self) -> None:
        self.show()


class _Logged(Display):
    """Events in a log; see cli/log."""

    def __init__(self, tally: Tally, name: str, driver: AnyDriver, watched: Watched) -> None:
        super().__init__(tally, name, driver)
        self._watched = watched

    def say(self, stage: str) -> None:
        super().say(stage)
        self.note(stage)

    def event(self, event: Event) -> None:
        self._watched.pass_on(event)

    async def follow(self) -> None:
        while True:
            await asyncio.sleep(self.every)
            self._watched.progress(self.rate())


class _Bar(Display):
    """A bar on one line and the figures on the next, so that both fit a narrow terminal."""

    every = _BAR_EVERY

    def __init__(self, tally: Tally, name: str, driver: AnyDriver) -> None:
        super().__init__(tally, name, driver)
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn

        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[left]}", markup=False),
        )
        self._task = self._progress.add_task(safe(name), total=None, left="")
        self._live = Live(console=self._console, auto_refresh=False)
        self._live.start()

    def show(self) -> None:
        from rich.console import Group
        from rich.text import Text

        self._progress.update(
            self._task, total=self.tally.planned or None, completed=self.tally.ended, left=self.left()
        )
        self._live.update(Group(self._progress, Text(self.figures(), overflow="fold")), refresh=True)

    def note(self, text: str) -> None:
        with contextlib.suppress(*UNREADABLE):
            self._console.print(safe(text), markup=False, highlight=False)

    def close(self) -> None:
        self.show()
        self._live.stop()


class Stages:
    """What is being done, on stderr: one line that changes where a person looks, else a line now and then."""

    _EVERY = (0.1, 10.0)  # seconds, on a terminal and in a log

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._next = time.monotonic() + self._EVERY[not self._live]

    def __call__(self, stage: str) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._EVERY[not self._live]
        if self._live:
            self._show(f"\r\x1b[K{safe(stage)}")
        else:
            note(stage)

    def __enter__(self) -> Stages:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._show("\r\x1b[K")

    def _show(self, text: str) -> None:
        with contextlib.suppress(*UNREADABLE):
            sys.stderr.write(text)
            sys.stderr.flush()


def short(number: int) -> str:
    """A number in three or four characters."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return str(number)


def money(usd: float) -> str:
    """US dollars, to the cent, and below one to a hundredth of it."""
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:.2f}"
