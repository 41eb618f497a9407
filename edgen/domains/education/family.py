"""The layout of Google's Education Dialogue data set (ED).

The first two keys are ED's own, with its spelling and order; edgen's keys follow. A topic's subject and
level, which ED lacks, come last, if there are any. For a space with more dimensions or other fields, this
last part holds a text per dimension, or an object with the text as its `value` if the entry has more fields.
It always holds the topic, which identifies such a record. The end marker is the suffix of the last turn, as
in most of ED.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from edgen.domains.education.layout import BACKGROUND_KEYS, DIMENSIONS, LAYOUT, TOPIC_FIELDS
from edgen.plugin import (
    Conversation,
    Provenance,
    RecordContents,
    Recorded,
    ReportWords,
    Scenario,
    Space,
    Turn,
)
from edgen.plugin.families import (
    FamilyBySpace,
    FiledRecord,
    KindDefaults,
    Role,
    make_filed_record,
    read_filed_index,
    read_filed_turns,
    read_values,
    with_marker,
    without_marker,
    write_values,
)
from edgen.plugin.protocols import SpaceRole


class BackgroundInfo(msgspec.Struct, frozen=True):
    """The scenario in ED's words ("prefrences" is ED's spelling)."""

    topic: str
    student_prefrences: str
    teacher_prefrences: str
    student_reactions: str
    teacher_reactions: str


_FLAT = frozenset({*DIMENSIONS, "conversation"})  # columns of a row of `edgen export --to hf`
_DIMENSION_OF = {keys[0]: dimension for dimension, keys in BACKGROUND_KEYS.items()}
_KEYS = {key: _DIMENSION_OF[key] for key in BackgroundInfo.__struct_fields__}  # the dimension of each key
_five_texts = operator.itemgetter(*_KEYS.values())


class EducationRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One element of a shard."""

    background_info: BackgroundInfo  # the scenario's values in the published layout
    conversation: tuple[Turn, ...]  # its turns
    id: str  # unique in the run
    probability: float | None  # that the student understood; None if unknown
    ended_by: Role | None  # the speaker of the end marker; None without one
    provenance: Provenance  # origin of the conversation
    scenario: dict[str, Any] | None = None  # values of further dimensions; None without them


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(EducationRecord).decode


class Education(RecordContents, ReportWords, KindDefaults, FamilyBySpace):
    """The layout of ED."""

    name = "education"
    title = "Education Dialogue"
    schema = "conversation"
    space_dimensions = LAYOUT.names
    space_roles = tuple(LAYOUT.roles)
    tags = ("education", "education-dialogue")
    measures = ("adherence", "answers", "probability")
    roles = tuple(SpaceRole(name, sees) for name, sees in LAYOUT.roles.items())
    probability_clause = "that the student understood"
    probability_of = "of understanding"
    probability_caveat = (
        "The probability that the student understood is the model's own statement. Nobody measured whether "
        "it is right, and no student learnt anything."
    )
    setting = "classrooms"
    group_words = ("topic", "persona")
    section_words: ClassVar[Mapping[str, tuple[str, str]]] = {
        "understanding": (
            "Did the student understand?",
            "The probability that each conversation states, by whether both sides prefer the same way.",
        ),
    }
    templates: ClassVar[Mapping[str, str]] = {
        "conversation": "education_dialogue",
        "opening": "export_opening",
        "judge": "oracle_guarded",
    }
    judged = "Teacher"
    values_clause = "topic, preferences and reactions"
    meanings: ClassVar[Mapping[str, str]] = {
        "topic": "what the lesson is about",
        "student_preference": "how the student likes to learn",
        "student_reaction": "what the student does when taught otherwise",
        "teacher_preference": "how the teacher likes to teach",
        "teacher_reaction": "what the teacher does when the student does not go along",
    }
    fields: ClassVar[Mapping[str, tuple[str, ...]]] = {"topic": tuple(TOPIC_FIELDS)}
    holds_events = False

    def vocabulary(self, space: Space) -> dict[str, frozenset[str]]:
        """Return the values of the five dimensions, by ED's keys."""
        return {key: frozenset(space[dimension].values) for key, dimension in _KEYS.items()}

    def written(self, conversation: Conversation) -> tuple[Turn, ...]:
        """Return the turns with the end marker after the last text."""
        return with_marker(conversation)

    def record(self, recorded: Recorded) -> bytes:
        """Return the record of a conversation, with the end marker after the last text."""
        conversation, scenario = recorded.conversation, recorded.scenario
        return _encode(
            EducationRecord(
                background_info=BackgroundInfo(*_five_texts(scenario.values)),
                conversation=self.written(conversation),
                id=recorded.id,
                probability=conversation.probability,
                ended_by=conversation.ended_by,
                provenance=recorded.provenance,
                scenario=_write_more(scenario),
            )
        )

    def read(self, data: bytes) -> Recorded:
        """Read a record without its end marker."""
        record = _decode(data)
        background = msgspec.structs.asdict(record.background_info)
        scenario = _build_scenario(record.provenance.scenario, background, record.scenario or {})
        return Recorded.of(record, scenario, without_marker(record.conversation, record.ended_by))

    def recognizes(self, record: Any) -> bool:
        """Return whether a decoded value is an object with ED's scenario, or a flat row of `edgen export --to
        hf`."""
        return isinstance(record, dict) and ("background_info" in record or record.keys() >= _FLAT)

    def read_file(self, record: Any) -> FiledRecord:
        """Read a record in ED's layout or a flat row."""
        if not isinstance(record, dict):
            raise ValueError("no object")
        record = _unflatten(record)
        background, more = record.get("background_info"), record.get("scenario")
        if not isinstance(background, dict):
            raise ValueError("no background_info")
        if not all(isinstance(background.get(key), str) for key in _KEYS):
            raise ValueError("background_info without its five texts")
        turns = read_filed_turns(record)
        if not {turn.role for turn in turns} <= LAYOUT.roles.keys():
            raise ValueError("a role that is neither Teacher nor Student")
        said = {name: what for name, what in more.items() if what} if isinstance(more, dict) else {}
        scenario = _build_scenario(read_filed_index(record), background, said)
        return make_filed_record(record, scenario, turns, marked=True)

    def groups(self, dimensions: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return topics, personas (all dimensions but the topic, as in `split: {by: persona}`), and both
        together."""
        persona = tuple(name for name in dimensions if name != "topic")
        return {"topic": ("topic",), "persona": persona, "topic and persona": ("topic", *persona)}


def _write_more(scenario: Scenario) -> dict[str, Any] | None:
    """Return the scenario's contents beyond ED's five texts; None if there are none."""
    fields = scenario.fields
    if len(scenario.values) == len(DIMENSIONS):
        if not fields:
            return None
        if {*fields} == {"topic"} and {*fields["topic"]} <= {*TOPIC_FIELDS}:
            return dict(fields["topic"])
    more = write_values(scenario, without=DIMENSIONS)
    return {"topic": scenario["topic"]} | more


def _build_scenario(index: int, background: Mapping[str, str], more: Mapping[str, Any]) -> Scenario:
    """Build a scenario from the five texts, the topic's fields, and the space's further contents."""
    values = {name: background[key] for key, name in _KEYS.items()}
    if "topic" not in more:
        return make_five_list_scenario(index, values, more.get("subject"), more.get("level"))
    others, fields = read_values(more)
    return Scenario(index, values | others, fields)


def _unflatten(record: dict[str, Any]) -> dict[str, Any]:
    """Convert a flat row to a record; return anything else unchanged."""
    if "background_info" in record or not record.keys() >= _FLAT:
        return record
    return {
        **record,
        "background_info": {key: record[name] for key, name in _KEYS.items()},
        "provenance": {key: record.get(key) for key in ("scenario", "simulated")},
        "scenario": {key: record.get(key) for key in TOPIC_FIELDS},
    }


def make_five_list_scenario(
    index: int, values: Mapping[str, str], subject: str | None = None, level: str | None = None
) -> Scenario:
    """Return the scenario with these values of the five dimensions, and its topic's fields."""
    said = {name: text for name, text in zip(TOPIC_FIELDS, (subject, level), strict=True) if text is not None}
    return Scenario(index, {name: values[name] for name in DIMENSIONS}, {"topic": said} if said else {})


EDUCATION = Education()
