"""The picture of a report on the site's first page: part of a real report, light and dark.

python docs/report_picture.py     draws it anew in docs/img/ (needs Chromium: sh .ci/setup-browser)

The simulator makes the run. The section with times is left out, because it differs from run to run.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.report.browser import Page, browser  # noqa: E402

IMAGES = ROOT / "docs" / "img"
WIDTH, BOTTOM = 1280, 8
COLOURS = 200
# The title, the plan with its outcome, and the charts in percentage points; returns where these end.
ARRANGE = """(() => {
    const shown = ['asked', 'arms'];
    for (const section of document.querySelectorAll('section')) {
        if (!shown.includes(section.id)) section.style.display = 'none';
    }
    const charts = [...document.querySelectorAll('#arms figure')];
    const points = charts.filter(chart => chart.textContent.includes('minus published, percentage points'));
    for (const chart of charts) if (!points.includes(chart)) chart.style.display = 'none';
    return Math.max(...points.map(chart => chart.getBoundingClientRect().bottom));
})()"""


def report(folder: Path) -> Path:
    """Make the run of the picture and its report."""
    (folder / "jobs").symlink_to(ROOT / "jobs")
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    for words in (
        ("generate", "jobs/experiment.yaml", "-n", "100", "-o", "outputs/experiment"),
        ("report", "outputs/experiment"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "edgen", *words], cwd=folder, env=environ, capture_output=True, check=False
        )
        assert done.returncode in (0, 3), done.stderr  # 3: one arm loses answers on purpose
    return folder / "outputs" / "experiment" / "report.html"


async def photograph(page: Page, file: Path, *, dark: bool) -> None:
    """Write the picture of the open report, in few colours so that it stays small."""
    await page.look(width=WIDTH, dark=dark)
    bottom = await page.value(ARRANGE)
    await page.screenshot(file)
    with Image.open(file) as whole:
        part = whole.convert("RGB").crop((0, 0, WIDTH, round(bottom) + BOTTOM))
    part.quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page_file = report(folder)
        async with browser(folder / "profile") as page:
            await page.open(page_file)
            for dark in (False, True):
                await photograph(page, IMAGES / f"report-{'dark' if dark else 'light'}.png", dark=dark)


if __name__ == "__main__":
    asyncio.run(main())
