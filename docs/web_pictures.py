"""Pictures of the pages of `edgen web` for the documentation: python -m docs.web_pictures [FOLDER]

The script makes a run with the simulator, serves it, and opens its pages in Chromium: light, dark, and as on
a phone. Pictures have few colours, so that they stay small.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests import ROOT
from tests.web.serving import browsing, open_ready, serving

_COLOURS = 48
PICTURES = {
    "web_list": (1280, 820, "light"),
    "web_conversation_dark": (1280, 820, "dark"),
    "web_phone": (390, 800, "light"),
}


def main(folder: Path) -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as place:
        outputs = Path(place) / "outputs"
        command = [sys.executable, "-m", "edgen", "generate", "jobs/experiment.yaml", "-n", "40"]
        subprocess.run([*command, "-o", str(outputs / "experiment")], cwd=ROOT, check=False)
        with serving(outputs, folder=Path(place)) as link, browsing() as chrome:
            base = link.partition("/enter")[0]
            for name, (width, height, scheme) in PICTURES.items():
                context = chrome.new_context(
                    viewport={"width": width, "height": height},
                    color_scheme="dark" if scheme == "dark" else "light",
                )
                page = context.new_page()
                page.goto(link)
                page.wait_for_url(f"{base}/")
                run = page.get_attribute("h2 a", "href")
                open_ready(page, f"{base}{run}?is=arm:json")
                if name != "web_list":
                    page.click(".entries li:nth-child(2) a")
                shot = Path(place) / "shot.png"
                page.screenshot(path=shot)
                with Image.open(shot) as image:
                    image.convert("RGB").quantize(_COLOURS).save(folder / f"{name}.png", optimize=True)
                context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "docs" / "img")
