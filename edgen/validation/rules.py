"""Rules that a JSON Schema cannot express: how the parts of a record fit together.

Every function takes a decoded record of any shape; the schema reports malformed parts, and the rules check
only well-formed ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from edgen.core.values import ROLES
from edgen.validation.findings import Finding, Vocabulary, quote
from edgen.validation.speech import TurnText, read_turn

Found = tuple[str, str, str]  # kind, path, problem


def find_rule_violations(
    record: Any,
    number: int | None,
    vocabulary: Vocabulary | None,
    begins_anew: Callable[[Any], bool] = lambda _: False,
    values_key: str | None = None,
) -> list[Finding]:
    """Return all findings of the rules in one decoded record, in reading order. `begins_anew` decides which
    turns may follow a turn of the same role. `values_key`: as in `LayoutChecks`."""
    if not isinstance(record, dict):
        return []
    found: list[Found] = []
    if vocabulary is not None:
        found += _check_vocabulary(record, vocabulary, values_key)
    turns = record.get("conversation")
    if isinstance(turns, list):
        found += _check_conversation(turns, record, begins_anew)
    found += _check_identity(record)
    return [Finding.of(number, path, problem, kind) for kind, path, problem in found]


def _check_vocabulary(
    record: dict[str, Any], vocabulary: Vocabulary, values_key: str | None
) -> Iterator[Found]:
    place = values_key or ("background_info" if "background_info" in record else "scenario")
    background = record.get(place)
    if not isinstance(background, dict):
        return
    for key, known in vocabulary.items():
        value = background.get(key)
        if isinstance(value, dict):
            value = value.get("value")
        if isinstance(value, str) and value not in known:
            yield "vocabulary", f"$.{place}.{key}", f"{quote(value)} is not in the preference space"


def _list_roles(record: dict[str, Any]) -> Sequence[str]:
    """Return the possible speakers: the roles that a record lists, else those of Education Dialogue."""
    roles = record.get("roles")
    return [role for role in roles if isinstance(role, str)] if isinstance(roles, list) else ROLES


def _check_conversation(
    turns: list[Any], record: dict[str, Any], begins_anew: Callable[[Any], bool]
) -> Iterator[Found]:
    roles = _list_roles(record)
    read: list[tuple[str, TurnText]] = []
    previous = None
    for i, turn in enumerate(turns):
        role, text = (turn.get("role"), turn.get("text")) if isinstance(turn, dict) else (None, None)
        if roles is not ROLES and isinstance(role, str) and role not in roles:
            yield (
                "schema",
                f"$.conversation[{i}].role",
                f"{quote(role)} is not one of the roles of this record",
            )
        if role is not None and role == previous and not begins_anew(turn):
            yield "alternation", f"$.conversation[{i}].role", f"the {role} speaks twice in a row"
        previous = role if role in roles else None
        # the schema reports an empty text
        if isinstance(text, str) and text:
            what = read_turn(text)
            path = f"$.conversation[{i}].text"
            for kind, problem in what.notes:
                yield kind, path, problem
            if what.markers > (what.marker_last and i == len(turns) - 1):
                yield "marker_place", path, "an end marker stands before the end of the conversation"
            if isinstance(role, str) and role in roles:
                read.append((role, what))
    if len(read) == len(turns):
        yield from _check_speakers(read)
        yield from _check_ending(read, record)


def _check_speakers(read: list[tuple[str, TurnText]]) -> Iterator[Found]:
    silent = {role for role, _ in read} - {role for role, what in read if what.says}
    for role in sorted(silent):
        yield "one_speaker", "$.conversation", f"the {role} has turns, but none that says anything"


def _check_ending(read: list[tuple[str, TurnText]], record: dict[str, Any]) -> Iterator[Found]:
    marked = any(what.markers for _, what in read)
    if "roles" in record:  # this record has no marker; `ended_by` names the role
        if marked:
            yield (
                "marker_place",
                "$.conversation",
                "an end marker is inside a text; `ended_by` states who ended it",
            )
        return
    if "ended_by" not in record:
        if not marked:
            yield "no_marker", "$.conversation", "nobody speaks the end marker; it may have been cut off"
        return
    ended_by = record["ended_by"]
    if ended_by is None and marked:
        yield "ended_by", "$.ended_by", "it is null, but the conversation holds an end marker"
    elif ended_by in ROLES and not marked:
        yield "ended_by", "$.ended_by", f"it is {quote(ended_by)}, but the conversation holds no end marker"


def _check_identity(record: dict[str, Any]) -> Iterator[Found]:
    identifier, provenance = record.get("id"), record.get("provenance")
    if not (isinstance(identifier, str) and isinstance(provenance, dict)):
        return
    scenario, replicate = provenance.get("scenario"), provenance.get("replicate")
    if not (type(scenario) is int and type(replicate) is int):
        return
    ending = f"-{scenario:06d}-r{replicate}"
    if not identifier.endswith(ending):
        yield (
            "id_mismatch",
            "$.id",
            f"{quote(identifier)} does not end with {ending}, as its provenance has it",
        )
