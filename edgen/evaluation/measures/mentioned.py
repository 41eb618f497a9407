"""Values and key facts of a scenario that its conversation mentions.

A value is mentioned if at least half of its content words occur anywhere in the conversation, in any form
with the same first six letters. Values that describe how a role behaves (personas) are left out: they show in
how it speaks. Key facts are fields of entries with two words or more, or with a digit; of a list, one item is
enough.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from edgen.evaluation.measures.personas import FOLDED, Labels, PersonaMeasure
from edgen.plugin import Mean, Sample, Tally, Total, Words, figure_kinds
from edgen.plugin.measures import Examples, Panel
from edgen.plugin.texts import pictures_in, readable_name
from edgen.plugin.texts import words as cut_words

_STOP = frozenset(["a", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did",
    "do", "does", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "into",
    "is", "it", "its", "just", "may", "me", "more", "most", "my", "no", "nor", "not", "of", "on", "one", "or",
    "other", "our", "out", "she", "should", "so", "some", "than", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "those", "to", "too", "up", "us", "was", "we", "were", "what", "when",
    "where", "which", "who", "why", "will", "with", "would", "you", "your"])  # fmt: skip
_STEM = 6
_ENOUGH = 0.5


class MentionedMeasure(PersonaMeasure):
    name = "mentioned"
    definition = (
        "The share of a scenario's values and key facts that its conversation mentions. A value is "
        "mentioned if at least half of its content words occur in the conversation; forms that share "
        "their first six letters are one word. Dimensions that describe how a role behaves are left out. "
        "Key facts are fields of entries with two words or more or a digit; of a list, one item is "
        "enough. edgen's own definition."
    )
    order = 9
    section = "behaviour"
    nothing = "No scenario has a value that could be mentioned."
    figures = figure_kinds("mentioned", lists=("unmentioned",))
    aggregates = (
        Total("parts"),
        Mean(
            "share",
            "mentioned",
            label="of a scenario",
            says="{it:.0%} of values and key facts",
            title="Mentioned",
        ),
        Tally("never", "unmentioned", label="not mentioned", if_any=True, names=readable_name, most=8),
        Examples("examples", "nothing", why="the conversation mentions nothing of its scenario"),
    )
    panels = (
        Panel(
            "mentioned",
            "Mentioned parts of a scenario",
            ("share",),
            "The mean share of its values and key facts that the conversation mentions. Look for a low "
            "share: the conversation is about something else.",
            folded=FOLDED,
            told="Mentioned share of a scenario's values and key facts",
        ),
        Panel(
            "mentioned-never",
            "Not mentioned",
            ("never",),
            "Conversations that do not mention a value or key fact, with their share of all values and key "
            "facts.",
            of="parts",
            folded=FOLDED,
        ),
    )
    compares = ()

    def of_personas(self, personas: Labels, sample: Sample, words: Words) -> Mapping[str, Any]:
        """Return the share of values and key facts that is mentioned, and the names of the others."""
        parts = [*_list_parts(sample.scenario.values, sample.scenario.fields, personas)]
        if not parts:
            return {}
        said = {word[:_STEM] for turn in words for word in turn}
        missing = [name for name, texts in parts if not any(_mentions(said, text) for text in texts)]
        return {
            "parts": len(parts),
            "mentioned": 1 - len(missing) / len(parts),
            "unmentioned": missing,
            "nothing": len(missing) == len(parts),
        }


def _list_parts(
    values: Mapping[str, str], fields: Mapping[str, Mapping[str, Any]], personas: Collection[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each value and key fact, with its texts."""
    for name, value in values.items():
        if name in personas:
            continue
        if _list_stems(value):
            yield name, [value]
        for field, said in fields.get(name, {}).items():
            texts = said if isinstance(said, list | tuple) else [said]
            if facts := [text for text in texts if isinstance(text, str) and _is_fact(text)]:
                yield f"{name}.{field}", facts


def _mentions(said: set[str], text: str) -> bool:
    stems = _list_stems(text)
    return len(stems & said) >= _ENOUGH * len(stems)


def _is_fact(text: str) -> bool:
    told = " " in text or any(map(str.isdigit, text))
    return told and bool(_list_stems(text)) and not pictures_in(text)


@lru_cache(maxsize=16_384)
def _list_stems(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in cut_words(text[:2_000]) if word not in _STOP)


MEASURE = MentionedMeasure()
