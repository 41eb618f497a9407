"""The tables of docs/exports.md, of the formats and of what was run on them, are made of the formats themselves.

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


def formats() -> str:
    lines = ["| `--to` | holds | needs | columns |", "|---|---|---|---|"]
    for name, one in FORMATS.items():
        needs = [*one.needs, *([f"records of the family {one.family}"] if one.family else [])]
        columns = "; ".join(
            (f"{table.name}: " if len(one.tables_of(SPACE)) > 1 else "")
            + ", ".join(f"`{column}`" for column in table.columns)
            for table in one.tables_of(SPACE)
        )
        columns = columns.replace(SCENARIO, "*scenario*")
        lines.append(f"| `{name}` | {one.summary} | {', '.join(needs)} | {columns} |")
    return "\n".join(lines) + "\n"


def tried() -> str:
    lines = ["| `--to` | libraries, with the day of the test |", "|---|---|"]
    for name, one in FORMATS.items():
        days: dict[str, list[str]] = {}
        for run in one.tried:
            days.setdefault(run.day, []).append(f"{run.library} {run.version}")
        told = "; ".join(f"{', '.join(several)} ({day})" for day, several in days.items())
        lines += [f"| `{name}` | {told} |"] if told else []
    return "\n".join(lines) + "\n"


TABLES = {"formats": formats, "tried": tried}


def test_the_page_has_what_the_formats_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        assert text.split(f"<!-- {name} begin -->\n")[1].split(f"<!-- {name} end -->\n")[0] == table()


def test_what_make_test_rl_runs_is_what_the_cards_say() -> None:
    """The versions of libraries that are installed there are those of its lock; the others were tried apart."""
    lock = dict(
        line.split("==") for line in (ROOT / "requirements-rl.txt").read_text().splitlines() if "==" in line
    )
    apart = {path.stem.removeprefix("test_") for path in (ROOT / "tests/rl/apart").glob("test_*.py")}
    for one in FORMATS.values():
        for run in one.tried:
            assert run.version == lock.get(run.library, run.version), f"{one.name}: {run.library}"
            assert run.library in lock or run.library.replace("-", "_").lower() in apart
            assert date.fromisoformat(run.day).isoformat() == run.day
            assert re.fullmatch(r"[a-zA-Z].*\.", run.what)


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        before, rest = page.split(f"<!-- {name} begin -->\n")
        _, after = rest.split(f"<!-- {name} end -->\n")
        page = f"{before}<!-- {name} begin -->\n{table()}<!-- {name} end -->\n{after}"
    PAGE.write_text(page, encoding="utf-8")
