"""The table of formats in docs/exports.md is made of the formats themselves.

`python -m tests.export.test_docs` writes it anew.
"""

from __future__ import annotations

from pathlib import Path

from tests.export.runs import FORMATS, SPACE

PAGE = Path(__file__).resolve().parents[2] / "docs" / "exports.md"
BEGIN, END = "<!-- formats begin -->\n", "<!-- formats end -->\n"


def table() -> str:
    lines = ["| `--to` | holds | needs | columns |", "|---|---|---|---|"]
    for name, one in FORMATS.items():
        needs = [*one.needs, *([f"records of the family {one.family}"] if one.family else [])]
        columns = "; ".join(
            (f"{table.name}: " if len(one.tables_of(SPACE)) > 1 else "")
            + ", ".join(f"`{column}`" for column in table.columns)
            for table in one.tables_of(SPACE)
        )
        lines.append(f"| `{name}` | {one.summary} | {', '.join(needs)} | {columns} |")
    return "\n".join(lines) + "\n"


def test_the_page_has_what_the_formats_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.split(BEGIN)[1].split(END)[0] == table()


if __name__ == "__main__":
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.split(END)[1], encoding="utf-8")
