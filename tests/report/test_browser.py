"""A report in a real browser: its content is shown, not run; it fits a phone; it follows light and dark."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from tests.report.browser import Page, browser, chromium
from tests.report.runs import ATTACKS

SCREENSHOTS = os.environ.get("EDGEN_SCREENSHOTS")  # a folder for screenshots; None keeps none
OVERFLOW = (
    "[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, svg') && "
    "e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"
)


def test_what_attacks_the_page_is_shown_and_not_run(reported: Callable[[str], Path], tmp_path: Path) -> None:
    chromium()
    report = reported("hostile") / "report.html"

    async def look() -> None:
        async with browser(tmp_path / "profile") as page:
            await page.look(width=1280, height=1600)
            await page.open(report)
            await _shown_and_not_run(page)
            await _fits_and_follows(page, "hostile")
            assert page.trouble == []
            assert page.requests == [report.resolve().as_uri()]

    asyncio.run(look())


async def _shown_and_not_run(page: Page) -> None:
    assert await page.value("typeof window.ran") == "undefined"
    assert (
        await page.value("document.querySelectorAll('script, img, iframe, object, base, link').length") == 0
    )
    assert await page.value(
        "[...document.querySelectorAll('*')].every(e => e.getAttributeNames().every(n => !n.startsWith('on')))"
    )
    text = await page.value("document.body.textContent")
    for attack in ATTACKS[:4]:
        assert attack in text
    assert "\\u202ereversed" in text
    assert "\u202e" not in text
    assert "\\x1b[31mred" in text
    # a rejected reply, and the text within a picture
    assert "I cannot help with that." in text
    assert "characters; rejected.jsonl has them all" in text
    inside = await page.value("[...document.querySelectorAll('svg text')].map(t => t.textContent).join('|')")
    assert "<img src='http://127.0.0.1:9" in inside
    assert "$adapt$" in inside


def test_it_fits_a_phone_and_follows_light_and_dark(reported: Callable[[str], Path], tmp_path: Path) -> None:
    chromium()
    reports = {kind: reported(kind) / "report.html" for kind in ("arms", "rejected")}

    async def look() -> None:
        async with browser(tmp_path / "profile") as page:
            for kind, report in reports.items():
                await page.look(width=1280, height=1600)
                await page.open(report)
                await _fits_and_follows(page, kind)
            assert page.trouble == []
            assert page.requests == [report.resolve().as_uri() for report in reports.values()]

    asyncio.run(look())


async def _fits_and_follows(page: Page, name: str) -> None:
    """Check that all content fits at any width, and that the background follows the dark setting."""
    await _keep(page, f"{name}-light")
    light = await page.value("getComputedStyle(document.body).backgroundColor")
    await page.look(width=1280, height=1600, dark=True)
    dark = await page.value("getComputedStyle(document.body).backgroundColor")
    assert _brightness(light) > 240
    assert _brightness(dark) < 40
    ink = await page.value("getComputedStyle(document.querySelector('svg text[style*=--ink]')).fill")
    assert _brightness(ink) > 150
    await _keep(page, f"{name}-dark")
    for width in (390, 360, 800):
        await page.look(width=width, height=844, touch=width < 500)
        assert await page.value("document.documentElement.scrollWidth <= innerWidth")
        assert await page.value(OVERFLOW) == []
        if width == 390:
            await _keep(page, f"{name}-phone")
    await page.look(width=390, height=844, touch=True)
    await page.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert await page.value("document.documentElement.scrollWidth <= innerWidth")
    assert await page.value(OVERFLOW) == []
    smallest = await page.value(
        "Math.min(...[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height))"
    )
    assert smallest > 8


async def _keep(page: Page, name: str) -> None:
    if SCREENSHOTS is not None:
        await page.screenshot(Path(SCREENSHOTS, f"{name}.png"))


def _brightness(colour: str) -> float:
    red, green, blue = (float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])
    return (red + green + blue) / 3
