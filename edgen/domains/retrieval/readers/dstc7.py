"""A reader of examples of DSTC7's track 1 (Gunasekara et al., DSTC7 2019), of Ubuntu and of Advising, in
every sub-task.

An example is read as a conversation: its context, then the right answer with its paraphrases as alternatives.
Examples of a test file, and those for which no candidate is right, are contexts alone. Examples that begin
with the same message are cut from one conversation, or share a part of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from edgen.domains.retrieval.submissions.truth import NONE
from edgen.plugin import RecordContents, ReportWords, Scenario, Turn
from edgen.plugin.families import FiledRecord, LayoutChecks
from edgen.plugin.readers import DataSetReader, make_verbatim_record

_RIGHT, _OPTIONS, _MESSAGES = "options-for-correct-answers", "options-for-next", "messages-so-far"
_ADVISING = {"student", "advisor"}


class Dstc7(LayoutChecks, RecordContents, ReportWords, DataSetReader):
    """The reader of examples of track 1."""

    name = "dstc7"
    title = "DSTC7 track 1 (Ubuntu, Advising)"
    schema = "dstc7"
    unit = "example"
    units_depend = "begin with the same message, so they are cut from one conversation"
    tags = ("response-selection",)
    precedence = 31
    marks_ends = False

    def recognizes(self, record: Any) -> bool:
        """Return whether a decoded value has the keys of an example."""
        return isinstance(record, dict) and isinstance(record.get(_MESSAGES), list)

    def identifier(self, record: Any) -> str | None:
        """Return the example's id as a text."""
        return read_identifier(record, "example-id")

    def read_file(self, record: Any) -> FiledRecord:
        """Return the conversation of an example."""
        listed = record.get(_MESSAGES) if isinstance(record, dict) else None
        if not isinstance(listed, list) or not listed:
            raise ValueError("no list of messages so far")
        turns = [read_turn(one) for one in listed]
        answers = [text for identifier, text in _read_candidates(record, _RIGHT) if identifier != NONE]
        if answers:
            role = "advisor" if {turn.role for turn in turns} & _ADVISING else "participant_2"
            others = tuple(Turn(role, text) for text in answers[1:])
            turns.append(Turn(role, answers[0], alternatives=others))
        return make_verbatim_record(
            self.identifier(record),
            Scenario(-1, _read_student_values(record)),
            tuple(turns),
            cluster=f"{turns[0].role}: {turns[0].text}",
        )

    def more_findings(self, record: Any) -> Iterator[tuple[str, str]]:
        """Yield right answers that are not among the candidates, and candidates that occur twice."""
        if not isinstance(record, dict):
            return
        right = [identifier for identifier, _ in _read_candidates(record, _RIGHT)]
        options = [identifier for identifier, _ in _read_candidates(record, _OPTIONS)]
        if _RIGHT in record and not right:
            yield f"$['{_RIGHT}']", "there is no right answer; where no candidate is right, it is NONE"
        for identifier in right:
            if options and identifier != NONE and identifier not in options:
                yield f"$['{_RIGHT}']", f"{identifier!r:.60} is not among the candidates"
        for identifier, count in Counter(options).items():
            if count > 1:
                yield f"$['{_OPTIONS}']", f"{identifier!r:.60} occurs {count} times"


def read_identifier(record: Any, key: str) -> str | None:
    """Return the text or number under a key of a decoded record as text; None if there is none."""
    found = record.get(key) if isinstance(record, dict) else None
    return str(found) if isinstance(found, str) or type(found) is int else None


def read_turn(one: Any) -> Turn:
    """Return the turn of a message. Raises ValueError if the utterance or the speaker is missing."""
    if not isinstance(one, dict) or not isinstance(one.get("utterance"), str):
        raise ValueError("a message without an utterance")
    if not isinstance(one.get("speaker"), str) or not one["speaker"]:
        raise ValueError("a message without a speaker")
    return Turn(one["speaker"], one["utterance"])


def _read_candidates(record: Mapping[str, Any], key: str) -> list[tuple[str, str]]:
    """Return the ids and texts of valid candidates."""
    listed = record.get(key)
    return [
        (str(one["candidate-id"]), one["utterance"])
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, dict)
        and isinstance(one.get("candidate-id"), str | int)
        and isinstance(one.get("utterance"), str)
    ]


def _read_student_values(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the student's term and standing in an advising example; many students share these values."""
    profile = record.get("profile")
    told = profile if isinstance(profile, dict) else {}
    return {key.lower(): told[key] for key in ("Term", "Standing") if isinstance(told.get(key), str)}


READER = Dstc7()
