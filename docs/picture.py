"""The picture in README.md: a terminal in which edgen makes conversations and shows one, light and dark.

python docs/picture.py     draws it anew in docs/img/ (make docs)

The commands are run and what they print is drawn; only the colours of the prompt are the picture's own.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "img"
COMMANDS = ("edgen generate jobs/quickstart.yaml", "edgen show outputs/quickstart 7")
WIDTH = 82
_ANSI = [(0, 0, 0), (200, 40, 40), (30, 140, 60), (170, 120, 0), (30, 90, 200), (150, 50, 160), (0, 130, 140)]
THEMES = {
    "light": TerminalTheme((255, 255, 255), (36, 41, 47), [*_ANSI, (110, 118, 129)], None),
    "dark": TerminalTheme(
        (13, 17, 23),
        (230, 237, 243),
        [(72, 79, 88), (255, 123, 114), (63, 185, 80), (210, 153, 34), (88, 166, 255), (188, 140, 255), (57, 197, 207), (177, 186, 196)],
        None,
    ),
}  # fmt: skip
# The picture loads no font: every browser has a monospaced one.
_FORMAT = re.sub(r"@font-face \{\{.*?\n    \}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "Fira Code, monospace", "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
)


def shown() -> Text:
    """Return the commands with their output."""
    text = Text()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "jobs").symlink_to(ROOT / "jobs")
        for command in COMMANDS:
            text.append("$ ", "bold green").append(command, "bold").append("\n")
            text.append(_output(command, folder)).append("\n")
    text.right_crop(1)
    return text


def _output(command: str, folder: str) -> str:
    words = [sys.executable, "-m", *command.split()]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(WIDTH)}
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True, env=environ)
    return done.stdout


def draw(text: Text, theme: str) -> str:
    """Return the picture as SVG."""
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(text)
    picture = console.export_svg(
        title="edgen", theme=THEMES[theme], code_format=_FORMAT, unique_id=f"edgen-{theme}"
    )
    return picture.replace("rgba(255,255,255,0.35)", "rgba(127,127,127,0.5)")  # a border that shows on white


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    told = shown()
    for name in THEMES:
        (IMAGES / f"terminal-{name}.svg").write_text(draw(told, name), encoding="utf-8")
