"""Sentences that appeal to an evaluator, found by their structure, not by a list of sentences.

A sentence is an appeal if it names this text as the judged one, or addresses a judge, and requests a mark, a
rank, a label or a preference. judge_directed_classes.txt has the forms of each class of words in several
languages. The classes must occur in one sentence, in any order, since word order differs between languages.
Time is linear in the length of the text.
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
)  # a text without any of these has no appeal
_PARTS = ("must", "role", "call")  # parts of the forms of other classes
_LONGEST = 300  # characters; longer sentences are searched in pieces
_END = re.compile(r"[.!?…]+(?=[\s\"”»)]|$)|[。！？।؟;\n]+")


@cache
def _read_classes() -> tuple[Forms, Forms]:
    """Return the forms of the gates, and those of the other classes."""
    sections = read_sections(Path(__file__).with_name("judge_directed_classes.txt"))
    others = [name for name in sections if name not in (*_GATES, *_PARTS)]
    return Forms({name: sections[name] for name in _GATES}), Forms({name: sections[name] for name in others})


def find_appeal(text: str) -> str | None:
    """Return the first sentence that appeals to an evaluator; None without one. `text` must be in Unicode
    form NFKC."""
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
    before it, addresses or names an evaluator."""
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
