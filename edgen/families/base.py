"""Families: kinds of conversations with the layout of their records.

A family owns a layout with its JSON Schema. Readers of a run's conversations ask the family for `Recorded`
values and need not know the layout. `read(record(x)) == x`.

`family_of` finds the family of a space, and `find_change` compares a record that was read back with the
original.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import msgspec

from edgen.core import registry
from edgen.core.errors import JobError, Problem
from edgen.core.plugins.faults import blame, require_type
from edgen.core.registry import part_of
from edgen.core.text import compile_later, describe_type
from edgen.core.values import Event, Provenance, Recorded, Scenario, Turn, with_marker, without_marker
from edgen.core.version import DISTRIBUTION
from edgen.core.yaml_values import shorten_word
from edgen.families.parts import FiledRecord, Scenes, TurnScene
from edgen.families.reader import DataSetReader, KindDefaults, group_dimensions
from edgen.families.reader import list_flaws as list_flaws
from edgen.space.model import Space
from edgen.validation.schema import conforms
from edgen.validation.speech import read_speech

__all__ = [
    "Family",
    "FamilyBySpace",
    "FiledRecord",
    "Provenance",
    "Recorded",
    "Scenes",
    "TurnScene",
    "group_dimensions",
    "make_filed_record",
    "make_record_id",
    "read_filed_index",
    "read_filed_turns",
    "read_record_id",
    "read_values",
    "with_marker",
    "without_marker",
    "write_values",
]  # fmt: skip

P = TypeVar("P")
_ID = compile_later(r"(.{1,150})-(\d{6,15})-r(\d{1,7})")


class Family(DataSetReader):
    """A kind of conversation.

    Required are `name`, `schema` and the three abstract methods. `recognizes` and `read_file` are for files
    of any origin. Optional abilities are in `edgen.families.reader.PARTS`.
    """

    title = "records of edgen"

    @abstractmethod
    def fits(self, space: Space) -> bool:
        """Return whether conversations on this space fit the layout."""

    @abstractmethod
    def record(self, recorded: Recorded) -> bytes:
        """Return the record as JSON."""

    @abstractmethod
    def read(self, data: bytes) -> Recorded:
        """Read a record. Raises ValueError or msgspec's errors for an invalid one."""

    def recognizes(self, record: Any) -> bool:
        """Return whether a decoded JSON value has the layout of this family."""
        return conforms(record, self.schema)

    def read_file(self, record: Any) -> FiledRecord:
        """Read the conversation in a decoded record of a file of any origin. Raises ValueError with the
        reason if it is invalid."""
        try:
            return FiledRecord.of(self.read(msgspec.json.encode(record)))
        except ValueError:
            raise ValueError(f"no record of the {self.name} family") from None


class FamilyBySpace(Family):
    """A family that fits every space with its dimensions, roles and section. A family that names none fits
    any space."""

    space_dimensions: ClassVar[frozenset[str]] = frozenset()
    """The dimensions that a space needs; it may have others."""
    space_roles: ClassVar[tuple[str, ...]] = ()
    """The roles that a space needs, in this order; empty: any."""
    space_section: ClassVar[str] = ""
    """The section that a space needs; empty: none."""

    def fits(self, space: Space) -> bool:
        """Return whether a space has the dimensions, roles and section."""
        return (
            self.space_dimensions.issubset(space.names)
            and self.space_roles in ((), tuple(role.name for role in space.roles))
            and (not self.space_section or space.sections.get(self.space_section) is not None)
        )


def make_record_id(name: str, scenario: int, replicate: int) -> str:
    """Return an id like `quickstart-000137-r0`."""
    return f"{name}-{scenario:06d}-r{replicate}"


def read_record_id(identifier: str) -> tuple[str, int, int] | None:
    """Return the name, scenario and replicate in a record's id; None for an invalid id."""
    found = _ID.fullmatch(identifier)
    if found is None:
        return None
    place = found[1], int(found[2]), int(found[3])
    return place if make_record_id(*place) == identifier else None


def write_values(scenario: Scenario, *, without: Collection[str] = ()) -> dict[str, Any]:
    """Return each dimension's value as JSON: the text, or an object with the text as its `value` and the
    entry's fields. Dimensions in `without` are omitted if they have no fields."""
    written: dict[str, Any] = {}
    for name, value in scenario.values.items():
        fields = scenario.fields.get(name)
        if fields:
            written[name] = {"value": value, **fields}
        elif name not in without:
            written[name] = value
    return written


def read_values(written: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Return the values and fields written by `write_values`. An object without a `value` is skipped."""
    values, fields = {}, {}
    for name, said in written.items():
        if not isinstance(said, dict):
            values[name] = str(said)
        elif "value" in said:
            values[name] = str(said["value"])
            fields[name] = {key: more for key, more in said.items() if key != "value"}
    return values, fields


def read_filed_turns(record: Any) -> tuple[Turn, ...]:
    """Return the turns of a decoded record, from the list under its key `conversation`. Raises ValueError
    with the reason if the list is empty or invalid."""
    turns = record.get("conversation")
    if not isinstance(turns, list) or not turns:
        raise ValueError("no list of turns")
    if not all(isinstance(turn, dict) and isinstance(turn.get("text"), str) for turn in turns):
        raise ValueError("a turn without a text")
    if not all(isinstance(turn.get("role"), str) and turn["role"] for turn in turns):
        raise ValueError("a turn without a role")
    return tuple(_read_filed_turn(turn) for turn in turns)


def _read_filed_turn(turn: Mapping[str, Any]) -> Turn:
    """Return a turn with its role, its text and the valid ones of its optional fields."""
    labels, data, others = (turn.get(key) for key in ("labels", "data", "alternatives"))
    return Turn(
        turn["role"],
        turn["text"],
        tuple(one for one in labels if isinstance(one, str)) if isinstance(labels, list) else (),
        data if isinstance(data, dict) else {},
        tuple(_read_filed_turn(one) for one in others if _is_turn(one)) if isinstance(others, list) else (),
    )


def _is_turn(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("role", "text"))


def read_filed_index(record: Mapping[str, Any]) -> int:
    """Return a decoded record's scenario number from its provenance; -1 if missing."""
    index = _read_provenance(record).get("scenario")
    return index if type(index) is int and index >= 0 else -1


def make_filed_record(
    record: Mapping[str, Any], scenario: Scenario, turns: Sequence[Turn], *, marked: bool
) -> FiledRecord:
    """Build the value of a decoded record, whose fields besides `scenario` and `turns` may be missing or
    invalid. With `marked`, an end marker in the turns shows that somebody ended the conversation, and
    `ended_by` only names the speaker."""
    provenance = _read_provenance(record)
    speech, repairs = read_speech(turns), provenance.get("repairs")
    ended_by, identifier = record.get("ended_by"), record.get("id")
    known = ended_by in {turn.role for turn in turns} and not (marked and speech.marker == "absent")
    return FiledRecord(
        id=identifier if isinstance(identifier, str) else None,
        scenario=scenario,
        speech=speech,
        entries=len(turns),
        ended_by=ended_by if known else speech.ended_by,
        probability=_read_probability(record.get("probability")),
        simulated=provenance.get("simulated") is True,
        repairs=tuple(name for name in repairs if isinstance(name, str)) if isinstance(repairs, list) else (),
        outcome=outcome if isinstance(outcome := record.get("outcome"), dict) else None,
        events=_read_events(record.get("events")),
    )


def _read_events(listed: Any) -> tuple[Event, ...]:
    """Return the valid events of a decoded record."""
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


def _read_provenance(record: Mapping[str, Any]) -> Mapping[str, Any]:
    provenance = record.get("provenance")
    return provenance if isinstance(provenance, dict) else {}


def _read_probability(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return float(value)


def read_record(family: Family, record: bytes) -> Recorded:
    """Read a record of a ledger. Raises the errors of the family's `read`, and FaultyPluginError if that
    returns anything but a Recorded."""
    found: Recorded = require_type("family", family.name, family.read(record), Recorded, "a Recorded")
    return found


def find_change(family: Family, recorded: Recorded, record: bytes) -> str | None:
    """Describe the difference between a record's value and the same value after it was written and read back.
    The result is a clause; None if there is no difference. Raises the errors of the family's `read`."""
    again = family.read(record)
    if again == recorded:
        return None
    if not isinstance(again, type(recorded)):
        return f"`read` returned {describe_type(again)}, not a Recorded"
    # a tuple in `data` or `outcome` is a list in JSON
    before, after = msgspec.to_builtins(recorded), msgspec.to_builtins(again)
    return None if _encode_sorted(before) == _encode_sorted(after) else _find_first_change(before, after, "")


def _encode_sorted(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _find_first_change(before: Any, after: Any, path: str) -> str:
    """Describe the first difference between two values, with its path."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in (*before, *(key for key in after if key not in before)):
            place = f"{path}.{key}" if path else str(key)
            if key not in after:
                return f"{place} is lost"
            if key not in before:
                return f"{place} is added"
            if _encode_sorted(before[key]) != _encode_sorted(after[key]):
                return _find_first_change(before[key], after[key], place)
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        for number, (one, other) in enumerate(zip(before, after, strict=False)):
            if _encode_sorted(one) != _encode_sorted(other):
                return _find_first_change(one, other, f"{path}[{number}]")
        return f"{path} has {len(after)} entries in place of {len(before)}"
    return f"{path} is {shorten_word(repr(after))} in place of {shorten_word(repr(before))}"


def family_of(space: Space, named: str | None = None) -> Family:
    """Return the family of a space's conversations: `named` or the space's own, else the first of edgen's own
    families that fits.

    Raises PluginError for an unknown name, JobError if the named family does not fit.
    """
    if (named := named or space.family) is None:
        return next(family for family in _list_own_families() if family.fits(space))
    family: Family = registry.find("family", named)
    try:
        fits = family.fits(space)
    except BaseException as error:  # noqa: BLE001 - raised again
        blame("family", named, error, f"for the space {space.name}")
    if not fits:
        problem = Problem("$.family", f"{named} does not fit the dimensions and roles of {space.name}")
        raise JobError.of(f"with the space {space.name}", (problem,))
    return family


def blame_reader(family: Family, data: bytes, error: Exception) -> None:
    """Raise FaultyPluginError if `data` satisfies the schema of a plugin's family, whose `read` raised
    `error`."""
    if registry.find_plugin("family", family.name) is None:
        return
    from edgen.validation.schema import is_valid  # only errors need it

    if is_valid(data, family.schema):
        blame("family", family.name, error, "for a record that satisfies its schema")


def find_family_of_record(record: Any) -> Family:
    """Return the family that recognises a decoded record; the first of edgen's own families if none does.
    Plugins' families are loaded only if none of edgen's own recognises the record."""
    for families in (_list_own_families, _list_other_families):
        if found := next((family for family in families() if family.recognizes(record)), None):
            return found
    return _list_own_families()[0]


@functools.cache
def _list_own_families() -> list[Family]:
    own: list[Family] = [
        registry.find("family", plugin.name)
        for plugin in registry.list_plugins()
        if plugin.kind == "family" and plugin.package == DISTRIBUTION
    ]
    return sorted(own, key=lambda family: family.precedence)


@functools.cache
def _list_other_families() -> list[Family]:
    return [family for family in registry.find_all("family") if family not in _list_own_families()]


def defaults_of(space: Space) -> KindDefaults:
    """Return the `KindDefaults` for conversations on a space (see `find_kind_part`)."""
    return find_kind_part(space, KindDefaults)


def find_kind_part(space: Space, part: type[P]) -> P:
    """Return a part of the family of a space's conversations. If that family lacks the part, return the part
    of the first of edgen's own families that fits."""
    family = family_of(space)
    if not isinstance(family, part):
        family = family_of(msgspec.structs.replace(space, family=None))
    return part_of(family, part)
