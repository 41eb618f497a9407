"""The definitions in docs/measures.md, made from the measures themselves: `python -m tests.measures_page` writes them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from edgen.evaluation.measuring import measures, measures_of_other_families

PAGE = Path(__file__).parents[1] / "docs" / "measures.md"
_BEGIN = "## Definitions"


def measures_page() -> str:
    """The page with the definitions as they are. Raises what loading a measure raises."""
    written = PAGE.read_text("utf-8").partition(_BEGIN)[0].rstrip()
    return "\n\n".join([written, _BEGIN, *_definitions()]) + "\n"


def _definitions() -> Iterator[str]:
    yield "Intervals are at 95%, with scenarios as clusters. *In expressions* lists the values of one conversation."
    families = measures_of_other_families(None)
    for family in ("", *dict.fromkeys(families.values())):
        if family:
            yield f"### {family.capitalize()} family only"
        for measure in measures():
            if families.get(measure.name, "") == family:
                told = ", ".join(f"`{_figure(measure.name, figure)}`" for figure in measure.figures)
                named = f" In expressions: {told}." if told else ""
                text = f"**{measure.name}**: {measure.definition}{named}"
                yield textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _figure(measure: str, figure: str) -> str:
    return f"measures.{measure}.{figure}" if figure else measure


if __name__ == "__main__":
    PAGE.write_text(measures_page(), "utf-8")
