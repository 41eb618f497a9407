"""The layout of a report in Chromium.

Nothing is cut or overlaps, bars are as long as their numbers, and text is readable, in light and dark, on a
phone and on wide screens, for runs that are hard to lay out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.dose import dose
from tests.report.browser import Page, browser, chromium
from tests.report.conftest import KINDS, MADE

CHECKS = f"({Path(__file__).with_name('layout.js').read_text('utf-8')})"
WIDTHS = dose((390, 1280), (390, 768, 1280, 1600))
FOLDED = "document.querySelectorAll('details').forEach(d => d.open = {})"


@pytest.mark.only_long
def test_nothing_is_cut_or_unreadable(reported: Callable[[str], Path], tmp_path: Path) -> None:
    """One browser opens a report of each kind."""
    chromium()

    async def look() -> None:
        async with browser(tmp_path / "profile") as page:
            for kind, report in reports.items():
                try:
                    await _look_at(page, report)
                except AssertionError as problem:
                    problem.add_note(f"in the report of {kind}")
                    raise

    reports = {kind: reported(kind) / "report.html" for kind in (*KINDS, *MADE)}
    asyncio.run(look())


async def _look_at(page: Page, report: Path) -> None:
    for width in WIDTHS:
        await page.look(width=width, touch=width < 500)
        await page.open(report)
        await _check(page, width, folded=True)
        await page.value(FOLDED.format("true"))
        await _check(page, width, folded=False)
    for dark in (False, True):
        await page.look(width=1280, dark=dark)
        assert await page.value(f"{CHECKS}.contrasts()") == []


async def _check(page: Page, width: int, *, folded: bool) -> None:
    """Check the layout of a page.

    On a wide screen, unfolded content needs no scrolling; elsewhere a table may be scrolled in its own frame.
    """
    for check in ("overflow", "touching", "torn", "pictures", "bars", "colourWords"):
        assert await page.value(f"{CHECKS}.{check}()") == [], (check, width)
    if folded and width >= 1280:
        assert await page.value(f"{CHECKS}.clipped()") == [], width


def test_the_experiment_is_half_as_long_as_it_was(reported: Callable[[str], Path], tmp_path: Path) -> None:
    """The page of jobs/experiment.yaml was once 18,666 pixels long at a width of 1,280.

    This run of the job has fewer conversations and the same sections.
    """
    chromium()
    report = reported("arms") / "report.html"

    async def measure() -> int:
        async with browser(tmp_path / "profile") as page:
            await page.look(width=1280)
            await page.open(report)
            height: int = await page.value("document.documentElement.scrollHeight")
            return height

    assert asyncio.run(measure()) < 18_666 / 2
