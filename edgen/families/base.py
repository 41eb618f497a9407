"""What kind of conversation it is: what a record of it looks like on disk, and how one is read back.

A family owns a layout with its JSON Schema. Whoever goes through a run's conversations asks the family for
`Recorded` values and knows no layout. `read(record(x)) == x`.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from edgen.core.values import END_MARKER, Conversation, Event, Role, Scenario, Turn, Usage
from edgen.reading import are_plain
from edgen.space.model import Space, SpaceRole
from edgen.validation.schema import conforms
from edgen.validation.speech import Speech, read_speech

_SUFFIX = f" {END_MARKER}"
_ID = re.compile(r"(.{1,150})-(\d{6,15})-r(\d{1,7})")


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a record comes from. `usage` adds up all calls that it rests on, `attempts` counts them.

    Where several templates and models worked on it, `template_sha256` is a digest over all of them and
    `model` the first role's; `templates` and `models` name each. `flags` are detectors' findings that were let stand;
    `branch` is the turn, from 0, at which it left replicate 0.
    """

    scenario: int
    seed: int
    replicate: int
    protocol: str
    backend: str
    model: str
    simulated: bool
    template_sha256: str
    space_sha256: str
    attempts: int
    finish_reason: str
    usage: Usage
    repairs: tuple[str, ...]
    flags: tuple[str, ...] = ()
    branch: int | None = None
    models: dict[str, str] | None = None
    templates: dict[str, str] | None = None


class Recorded(msgspec.Struct, frozen=True):
    """A finished conversation with all that a record holds. What the conversation says of its repairs, flags and
    branch is what its provenance says."""

    id: str
    scenario: Scenario
    conversation: Conversation
    provenance: Provenance

    @classmethod
    def of(cls, record: Any, scenario: Scenario, turns: tuple[Turn, ...]) -> Recorded:
        """What a record holds that has `id`, `probability`, `ended_by` and `provenance`, and may have `outcome` and
        `events`."""
        made: Provenance = record.provenance
        conversation = Conversation(
            turns,
            record.probability,
            record.ended_by,
            made.repairs,
            made.flags,
            made.branch,
            getattr(record, "outcome", None),
            getattr(record, "events", ()),
        )
        return cls(record.id, scenario, conversation, made)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """What was said, without the end marker."""
        return self.conversation.turns


class FiledRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as a file has it, whoever wrote the file.

    `id` is None and the scenario's index -1 where the record tells none. `speech` is what was said in its turns, and
    `entries` counts these as they are written.
    """

    id: str | None
    scenario: Scenario
    speech: Speech
    entries: int
    ended_by: Role | None
    probability: float | None
    simulated: bool
    repairs: tuple[str, ...]
    outcome: dict[str, Any] | None = None
    events: tuple[Event, ...] = ()

    @classmethod
    def of(cls, recorded: Recorded) -> FiledRecord:
        """A record of edgen's own."""
        conversation = recorded.conversation
        return cls(
            id=recorded.id,
            scenario=recorded.scenario,
            speech=_speech_of(conversation),
            entries=len(conversation.turns),
            ended_by=conversation.ended_by,
            probability=conversation.probability,
            simulated=recorded.provenance.simulated,
            repairs=recorded.provenance.repairs,
            outcome=conversation.outcome,
            events=conversation.events,
        )


class Scene(msgspec.Struct, frozen=True):
    """What a turn is said in, where a conversation is about one thing after the other: the turn, from 0, at which that
    began, the scenario with the values that it has, and what the turn's role knows of it, in lines."""

    begin: int
    scenario: Scenario
    brief: str


class Scenes:
    """The scenes of conversations about one space. `note` is what a card says of rows that have them."""

    note: ClassVar[str] = ""

    @abstractmethod
    def of(
        self, role: Role, scenario: Scenario, turns: Sequence[Turn], outcome: Mapping[str, Any] | None
    ) -> dict[int, Scene]:
        """The scene of each turn of a role that answers something, by its place. `turns` may stop anywhere."""

    def responses(self, turn: Turn) -> tuple[Turn, ...]:
        """The responses to the turn before a turn: with it, unless it was given to another one."""
        return (turn, *turn.alternatives)


class Family:
    """A kind of conversation.

    `name` is that of its entry point, `tags` are what a card calls its conversations, `schema` is the file of its JSON
    Schema in validators/, `measures` are the names of those that only conversations of this kind have. `roles` speak
    where no space tells who does. `precedence`: of edgen's own that fit a space or know a record, the lowest is taken.
    """

    name: ClassVar[str]
    schema: ClassVar[str]
    tags: ClassVar[tuple[str, ...]] = ()
    measures: ClassVar[tuple[str, ...]] = ()
    roles: ClassVar[tuple[SpaceRole, ...]] = ()
    precedence: ClassVar[int] = 0

    @abstractmethod
    def fits(self, space: Space) -> bool:
        """Whether conversations about this space can be recorded so."""

    def vocabulary(self, space: Space) -> dict[str, frozenset[str]]:
        """What the space lets a record hold, by the keys that the record's scenario has."""
        return {one.name: frozenset(one.values) for one in space.dimensions}

    def written(self, conversation: Conversation) -> tuple[Turn, ...]:
        """The turns as a record holds their texts: with an end marker where the layout has one."""
        return conversation.turns

    @abstractmethod
    def record(self, recorded: Recorded) -> bytes:
        """The record, as JSON."""

    @abstractmethod
    def read(self, data: bytes) -> Recorded:
        """What a record holds. Raises ValueError or msgspec's errors where it is none."""

    def recognizes(self, record: Any) -> bool:
        """Whether a decoded JSON value is laid out as a record of this family."""
        return conforms(record, self.schema)

    def schema_of(self, record: Any) -> str:
        """The file of the JSON Schema that a decoded record has to satisfy, where the family knows several layouts."""
        return self.schema

    def more_findings(self, record: Any) -> Iterator[tuple[str, str]]:
        """What is wrong with a decoded record that its schema cannot say: (path, problem), each an error."""
        yield from ()

    def begins_anew(self, turn: Any) -> bool:
        """Whether a turn, as a decoded record has it, begins something new, so that it may stand behind one of the same
        role."""
        return False

    def scenes(self, space: Space) -> Scenes | None:
        """The scenes of conversations about this space; None where a conversation is about one thing."""
        return None

    def pictures(self, recorded: Recorded, space: Space) -> dict[int, str]:
        """What is shown with a turn, by the turn's place: SVG that loads nothing and runs nothing, its texts escaped."""
        return {}

    def read_file(self, record: Any) -> FiledRecord:
        """The conversation in a decoded record of a file, whoever wrote it. Raises ValueError with a clause that says
        why it is none."""
        try:
            return FiledRecord.of(self.read(msgspec.json.encode(record)))
        except ValueError:
            raise ValueError(f"no record of the {self.name} family") from None

    def groups(self, dimensions: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """By what train and test may be kept apart: each is a name, and the dimensions whose values make a group."""
        return dimension_groups(dimensions)


def dimension_groups(dimensions: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Each dimension by itself, and all of them together."""
    return {**{name: (name,) for name in dimensions}, "all dimensions": tuple(dimensions)}


def record_id(name: str, scenario: int, replicate: int) -> str:
    """`quickstart-000137-r0`."""
    return f"{name}-{scenario:06d}-r{replicate}"


def read_record_id(identifier: str) -> tuple[str, int, int] | None:
    """Name, scenario and replicate in a record's id; None where it is no such id."""
    found = _ID.fullmatch(identifier)
    if found is None:
        return None
    place = found[1], int(found[2]), int(found[3])
    return place if record_id(*place) == identifier else None


def with_marker(conversation: Conversation) -> tuple[Turn, ...]:
    """The turns, the last of them with the end marker if somebody spoke it."""
    turns = conversation.turns
    if conversation.ended_by is None:
        return turns
    return (*turns[:-1], msgspec.structs.replace(turns[-1], text=turns[-1].text + _SUFFIX))


def _speech_of(conversation: Conversation) -> Speech:
    """What `read_speech` makes of the turns with the marker. Most turns are plain, and need not be read for that."""
    turns, ended_by = conversation.turns, conversation.ended_by
    if are_plain([turn.text for turn in turns]):
        return (
            Speech(turns, "absent", None, ())
            if ended_by is None
            else Speech(turns, "suffix", turns[-1].role, ())
        )
    return read_speech(with_marker(conversation))


def without_marker(turns: tuple[Turn, ...], ended_by: Role | None) -> tuple[Turn, ...]:
    """The turns as they were before `with_marker`."""
    if ended_by is None:
        return turns
    return (*turns[:-1], msgspec.structs.replace(turns[-1], text=turns[-1].text.removesuffix(_SUFFIX)))


def write_values(scenario: Scenario, *, without: Collection[str] = ()) -> dict[str, Any]:
    """Each dimension's value as JSON: the text, or an object with the text as its `value` and the entry's fields.
    Those named in `without` are left out where they have no fields."""
    written: dict[str, Any] = {}
    for name, value in scenario.values.items():
        fields = scenario.fields.get(name)
        if fields:
            written[name] = {"value": value, **fields}
        elif name not in without:
            written[name] = value
    return written


def read_values(written: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """The values and the fields that `write_values` wrote. An object without a `value` is left out."""
    values, fields = {}, {}
    for name, said in written.items():
        if not isinstance(said, dict):
            values[name] = str(said)
        elif "value" in said:
            values[name] = str(said["value"])
            fields[name] = {key: more for key, more in said.items() if key != "value"}
    return values, fields


def filed_turns(record: Any) -> tuple[Turn, ...]:
    """The turns of a decoded record that has a list of them under `conversation`. Raises ValueError with a clause that
    says why there are none."""
    turns = record.get("conversation")
    if not isinstance(turns, list) or not turns:
        raise ValueError("no list of turns")
    if not all(isinstance(turn, dict) and isinstance(turn.get("text"), str) for turn in turns):
        raise ValueError("a turn without a text")
    if not all(isinstance(turn.get("role"), str) and turn["role"] for turn in turns):
        raise ValueError("a turn without a role")
    return tuple(_filed_turn(turn) for turn in turns)


def _filed_turn(turn: Mapping[str, Any]) -> Turn:
    """A turn with what is known of it; what is malformed besides role and text is left out."""
    labels, data, others = (turn.get(key) for key in ("labels", "data", "alternatives"))
    return Turn(
        turn["role"],
        turn["text"],
        tuple(one for one in labels if isinstance(one, str)) if isinstance(labels, list) else (),
        data if isinstance(data, dict) else {},
        tuple(_filed_turn(one) for one in others if _is_turn(one)) if isinstance(others, list) else (),
    )


def _is_turn(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("role", "text"))


def filed_index(record: Mapping[str, Any]) -> int:
    """The number of a decoded record's scenario by its provenance; -1 where that tells none."""
    index = _provenance(record).get("scenario")
    return index if type(index) is int and index >= 0 else -1


def filed_record(
    record: Mapping[str, Any], scenario: Scenario, turns: Sequence[Turn], *, marked: bool
) -> FiledRecord:
    """A decoded record of which anything but `scenario` and `turns` may be missing or wrong. `marked`: who ended it
    is told by an end marker in the turns, and `ended_by` only says whose it is."""
    provenance = _provenance(record)
    speech, repairs = read_speech(turns), provenance.get("repairs")
    ended_by, identifier = record.get("ended_by"), record.get("id")
    known = ended_by in {turn.role for turn in turns} and not (marked and speech.marker == "absent")
    return FiledRecord(
        id=identifier if isinstance(identifier, str) else None,
        scenario=scenario,
        speech=speech,
        entries=len(turns),
        ended_by=ended_by if known else speech.ended_by,
        probability=_probability(record.get("probability")),
        simulated=provenance.get("simulated") is True,
        repairs=tuple(name for name in repairs if isinstance(name, str)) if isinstance(repairs, list) else (),
        outcome=outcome if isinstance(outcome := record.get("outcome"), dict) else None,
        events=_events(record.get("events")),
    )


def _events(listed: Any) -> tuple[Event, ...]:
    """The events of a decoded record; what is none is left out."""
    return tuple(filter(_is_event, listed)) if isinstance(listed, list) else ()


def _is_event(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("event"), str)
        and type(value.get("time")) in (int, float)
        and value["time"] >= 0
        and type(value.get("turn")) is int
        and value["turn"] >= 0
    )


def _provenance(record: Mapping[str, Any]) -> Mapping[str, Any]:
    provenance = record.get("provenance")
    return provenance if isinstance(provenance, dict) else {}


def _probability(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return float(value)
