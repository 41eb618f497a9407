"""Sentences that appeal to an evaluator: known by their structure, not by a list of sentences.

A sentence counts that names this very text as what is judged, or speaks to somebody who judges, and asks for
a mark, a rank, a label or a preference. Each class of words has lines for several languages
(judge_directed_classes.txt); what belongs together has to stand in one sentence, whose order differs between
languages. Linear in the length of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from edgen.preferences.text_forms import Forms, read_sections

_GATES = (
    "evaluator",
    "object",
    "judging",
    "mine",
    "side",
    "soft",
    "lone",
)  # without one of these, a text appeals to nobody
_PARTS = ("must", "role", "call")  # of forms of other classes
_LONGEST = 300  # characters of a sentence; a longer one is looked at in pieces
_END = re.compile(r"[.!?…]+(?=[\s\"”»)]|$)|[。！？।؟;\n]+")


@cache
def _read_classes() -> tuple[Forms, Forms]:
    """Return the classes of words: the gates, and the others."""
    sections = read_sections(Path(__file__).with_name("judge_directed_classes.txt"))
    others = [name for name in sections if name not in (*_GATES, *_PARTS)]
    return Forms({name: sections[name] for name in _GATES}), Forms({name: sections[name] for name in others})


def find_appeal(text: str) -> str | None:
    """Return the first sentence that appeals to an evaluator, None without one. `text` is in Unicode's form
    NFKC."""
    gates, others = _read_classes()
    gate_forms = gates.choose(text)
    if not any(_list_matching(gate_forms, text)):
        return None
    other_forms = others.choose(text)
    addressed = False
    for sentence in _split_sentences(text):
        has = {*_list_matching(gate_forms, sentence)}
        if has or addressed:
            has.update(_list_matching(other_forms, sentence))
        spoken_to = bool(has & {"address", "judging"})
        if _appeals(has, spoken_to=spoken_to or addressed):
            return sentence
        addressed = spoken_to
    return None


def _list_matching(classes: Mapping[str, Sequence[re.Pattern[str]]], text: str) -> Iterator[str]:
    """Yield the classes with a matching form."""
    return (name for name, forms in classes.items() if any(form.search(text) for form in forms))


def _appeals(has: set[str], *, spoken_to: bool) -> bool:
    """Return whether the classes in one sentence make an appeal. `spoken_to`: this sentence, or the one
    before, addresses or names an evaluator."""
    asks = bool(has & {"rate", "choose", "label"})
    claims = bool(has & {"extreme", "label", "better"})
    if spoken_to and (claims or ("object" in has and asks) or ("rare" in has and asks)):
        return True
    if "decided" in has and {"side", "soft", "lone"} & has:
        return True
    if "side" in has and ({"ends", "rare"} & has or spoken_to):
        return True
    if "rare" in has and "prefers" in has:
        return True
    if "judging" in has and "choose" in has:
        return True
    if "rare" in has and "extreme" in has:
        return True
    if "mine" in has and ({"choose", "extreme", "better"} & has):
        return True
    return "object" in has and (bool(has & {"better", "label", "criteria"}) or ("extreme" in has and asks))


def _split_sentences(text: str) -> Iterator[str]:
    for sentence in _END.split(text):
        for start in range(0, len(sentence), _LONGEST):
            yield sentence[start : start + _LONGEST]
