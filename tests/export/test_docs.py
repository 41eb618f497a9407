"""The list of docs/exports.md is made from the formats themselves.

`python -m tests.export.test_docs` writes it anew.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

from tests.export.runs import FORMATS, SPACE

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "exports.md"
# The columns of Education Dialogue's space, which most formats have; the page lists them once.
SCENARIO = ", ".join(
    f"`{name}`"
    for name in (
        "topic",
        "student_preference",
        "student_reaction",
        "teacher_preference",
        "teacher_reaction",
        "subject",
        "level",
    )
)


# Layouts of other projects, whose columns are explained on their own pages and by each export's card.
ELSEWHERE = (
    "cima",
    "convokit",
    "crwiz",
    "dstc7",
    "ed",
    "intent-prediction",
    "msdialog-complete",
    "msdialog-intent",
    "msdialog-responserank",
)


def formats() -> str:
    lines = []
    for name, one in FORMATS.items():
        needs = [*one.needs, *([f"the family {one.family}"] if one.family else [])]
        needed = f" Needs {', '.join(needs)}." if needs else ""
        columns = "; ".join(
            (f"{table.name}: " if len(one.tables_of(SPACE)) > 1 else "")
            + ", ".join(f"`{column}`" for column in table.columns)
            for table in one.tables_of(SPACE)
        )
        columns = columns.replace(SCENARIO, "*scenario*")
        shown = "" if name in ELSEWHERE else f" ({columns})"
        lines.append(f"- `{name}`: {one.summary}{needed}{shown}")
    return "\n".join(lines) + "\n"


BEGIN, END = "<!-- formats begin -->\n", "<!-- formats end -->\n"


def test_the_page_has_what_the_formats_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.split(BEGIN)[1].split(END)[0] == formats()


def test_what_make_test_rl_runs_is_what_the_cards_say() -> None:
    """The cards state the versions that `make test-rl` installs; other libraries were tested separately."""
    lock = dict(
        line.split("==") for line in (ROOT / "requirements-rl.txt").read_text().splitlines() if "==" in line
    )
    apart = {path.stem.removeprefix("test_") for path in (ROOT / "tests/rl/apart").glob("test_*.py")}
    for one in FORMATS.values():
        for run in one.card.tried:
            assert run.version == lock.get(run.library, run.version), f"{one.name}: {run.library}"
            assert run.library in lock or run.library.replace("-", "_").lower() in apart
            assert date.fromisoformat(run.day).isoformat() == run.day
            assert re.fullmatch(r"[a-zA-Z].*\.", run.what)


if __name__ == "__main__":
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + formats() + END + rest.split(END)[1], encoding="utf-8")
