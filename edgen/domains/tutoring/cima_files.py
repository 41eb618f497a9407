"""A reader of entries of CIMA's released `dataset.json` (Stasaski, Kao and Hearst, BEA 2020), as
conversations.

An entry is a context that ends with the student, and the responses of several tutors to it, each with its
actions. It is read as one conversation: the context, then the first response with the others as its
alternatives. There are two layouts. In that of prepositional phrases, `past_convo` is a list, the student's
actions are the texts "True" and "False", and the tutors' are booleans. In that of shapes, `pastConvo` is one
text, all actions are texts, and the student has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from edgen.plugin import Scenario, Turn
from edgen.plugin.families import FiledRecord, make_filed_record

# The order of the booleans by the release's README; the paper has another order for the tutor.
STUDENT_ACTIONS = ("Guess", "Question", "Affirmation", "Other")
TUTOR_ACTIONS = ("Question", "Hint", "Correction", "Confirmation", "Other")
_BOOLEANS = ("True", "False")
# The keys about an entry's exercise: (the dimension, its English word, its Italian word).
_CONCEPTS = (
    ("preposition", "engPrep", "prep"),
    ("object", "engObj", "obj"),
    ("shape", "engShape", "shape"),
    ("colour", "engColor", "color"),
)
# The beginning of a turn in the context of shapes, which is one text.
SPEAKER = re.compile(r"(?:^|\s)(Tutor|Student): ")


def is_entry(record: Any) -> bool:
    """Return whether a decoded record has the layout of CIMA's entries."""
    return (
        isinstance(record, dict)
        and ("past_convo" in record or "pastConvo" in record)
        and "tutorResponses" in record
    )


def find_schema(record: Mapping[str, Any]) -> str:
    """Return the schema of an entry's layout."""
    return "cima_prep" if "past_convo" in record else "cima_shape"


def read(record: Mapping[str, Any]) -> FiledRecord:
    """Return the conversation of an entry. Raises ValueError with a clause about the problem if there is
    none."""
    context = _read_context(record)
    responses, named = record.get("tutorResponses"), record.get("tutorActions")
    if not isinstance(responses, list) or not isinstance(named, list):
        raise ValueError("no list of tutors' responses and their actions")
    if _is_header(record):
        raise ValueError("a row of the table's headings")
    said = [
        Turn("Tutor", text, _read_labels(actions, TUTOR_ACTIONS))
        for text, actions in zip(responses, named, strict=False)
        if isinstance(text, str) and text.strip(" \"'")
    ]
    if not said:
        raise ValueError("no tutor's response")
    if context and context[-1].role == "Student":
        labels = _read_labels(record.get("studentActions"), STUDENT_ACTIONS)
        context[-1] = Turn("Student", context[-1].text, labels)
    first = Turn("Tutor", said[0].text, said[0].labels, alternatives=tuple(said[1:]))
    turns = (*context, first)
    found = make_filed_record(record, _read_scenario(record), turns, marked=False)
    # Texts are kept unchanged, as in the figures of the release, which has no end markers.
    return msgspec.structs.replace(found, speech=msgspec.structs.replace(found.speech, turns=turns))


def _read_context(record: Mapping[str, Any]) -> list[Turn]:
    """Return the turns before the responses."""
    if "past_convo" in record:
        texts = record["past_convo"]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError("past_convo that is not a list of texts")
        return [Turn("Student" if place % 2 else "Tutor", text) for place, text in enumerate(texts)]
    text = record["pastConvo"]
    if not isinstance(text, str):
        raise ValueError("pastConvo that is not text")
    parts = SPEAKER.split(text)
    return [Turn(role, said.strip()) for role, said in zip(parts[1::2], parts[2::2], strict=True)]


def _read_scenario(record: Mapping[str, Any]) -> Scenario:
    values: dict[str, str] = {}
    fields: dict[str, dict[str, Any]] = {}
    for name, english, italian in _CONCEPTS:
        if isinstance(record.get(english), str):
            values[name] = record[english]
            fields[name] = {"it": record.get(italian)}
    return Scenario(-1, values, fields)


def _read_labels(named: Any, actions: tuple[str, ...]) -> tuple[str, ...]:
    """Return the actions whose booleans are true; anything else counts as false."""
    if not isinstance(named, list):
        return ()
    return tuple(action for action, one in zip(actions, named, strict=False) if one is True or one == "True")


def _is_header(record: Mapping[str, Any]) -> bool:
    return record.get("engShape") == "eng_shape" or record.get("shape") == "trans_shape"


def find_errors(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the known errors of the release: (path, problem)."""
    if _is_header(record):
        yield "$", "this is a row of the table's headings, no exercise"
    image = record.get("img")
    if isinstance(image, str) and image[:1] == '"':
        yield "$.img", "the path is in quotation marks"
    rules = record.get("grammarRules")
    if isinstance(rules, str) and (problem := _find_rules_problem(rules)):
        yield "$.grammarRules", problem
    responses, actions = record.get("tutorResponses"), record.get("tutorActions")
    if not isinstance(actions, list):
        return  # the schema reports it instead
    for place, named in enumerate(actions):
        for i, one in enumerate(named if isinstance(named, list) else ()):
            if not isinstance(one, bool) and one not in _BOOLEANS:
                yield f"$.tutorActions[{place}][{i}]", f"{one!r:.60} is neither True nor False"
    if isinstance(responses, list) and len(responses) != len(actions):
        yield "$.tutorActions", f"{len(actions)} lists of actions for {len(responses)} responses"


def _find_rules_problem(text: str) -> str | None:
    """Return a clause about an error in the grammar rules, which are JSON in a text; None if they are
    valid."""
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return "the rules are not JSON"
    rest = text[end:].strip()
    return f"unexpected text after the rules: {rest[:40]!r}" if rest else None
