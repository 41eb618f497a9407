"""The list in docs/measures.md, from the definitions: `python -m tests.measures_page` writes it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from edgen.evaluation.measuring import find_measures_of_other_families, list_measures

PAGE = Path(__file__).parents[1] / "docs" / "measures.md"
_BEGIN = "## Definitions"
_HEAD = """\
`edgen list measures`, `edgen stats --json` and the report have whole definitions, with further figures (…) and sources.
Intervals are at 95%, with scenarios as clusters. *Values* are those of one conversation, for expressions."""
_LONGEST = 30  # the most words of a definition; further clauses are left out
_SENTENCE = re.compile(r".*?(?<!et al)\.(?= [A-Z*]| edgen|$)", re.DOTALL)
_SOURCE = re.compile(r" \([^()]*\b(?:19|20)\d\d\b[^()]*\)")


def measures_page() -> str:
    """Return the page with the first clauses of each definition, without sources.

    An error of loading a measure is raised.
    """
    written = PAGE.read_text("utf-8").partition(_BEGIN)[0].rstrip()
    return "\n\n".join([written, _BEGIN, *_definitions()]) + "\n"


def _definitions() -> Iterator[str]:
    yield _HEAD
    families = find_measures_of_other_families(None)
    for family in ("", *dict.fromkeys(families.values())):
        if family:
            yield f"### {family.capitalize()} family only"
        for measure in list_measures():
            if families.get(measure.name, "") == family:
                told = ", ".join(f"`{_figure(measure.name, figure)}`" for figure in measure.figures)
                named = f" Values: {told}." if told else ""
                first = _SENTENCE.match(measure.definition)
                assert first, measure.name
                text = f"**{measure.name}**: {_shorten(_SOURCE.sub('', first[0]))}{named}"
                yield textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _shorten(sentence: str) -> str:
    """Return the first clauses of a sentence, as many as fit; the first in any case."""
    kept, *further = sentence.split("; ")
    while further and len(f"{kept} {further[0]}".split()) <= _LONGEST:
        kept += f"; {further.pop(0)}"
    return f"{kept}; …" if further else kept


def _figure(measure: str, figure: str) -> str:
    return f"measures.{measure}.{figure}" if figure else measure


if __name__ == "__main__":
    PAGE.write_text(measures_page(), "utf-8")
