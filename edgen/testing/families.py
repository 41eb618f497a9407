"""Check that a family meets edgen's expectations."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.registry import part_of
from edgen.core.text import describe_type
from edgen.core.values import Conversation, Turn, Usage
from edgen.families.base import Family, FiledRecord, Provenance, Recorded, find_change, make_record_id
from edgen.families.reader import KindDefaults, RecordContents
from edgen.space import Space
from edgen.space.sampling import Sampler
from edgen.testing.check import SPACE, Check, begin_check, find_space
from edgen.validation.schema import is_valid

_TEXTS = (
    "What is a fraction?",
    'A part of a whole: 1/2 is "one half".\nTwo of them make 1.',
    "Ähm … 3 < 4 & 4 > 3? 🙂",
    "Yes. {that} is \\right\\; well done!",
    "  Blanks at both ends, and\ta tab. \n",
    "Two  blanks,\r\nanother line,\n\nand an empty one before it.",
    "e\u0301 is not \u00e9, \u212b is not \u00c5; a\u00a0b, c\u200bd, e\u2028f, \x07",
    "&lt;b&gt; %20 \\n \\u00e9 null",
    "Student: I said: Teacher: [Student] **Teacher**: yes.",
    "A long one. " * 2_000,
)


def check_family(
    family: Family, recorded: Iterable[Recorded] | None = None, *, space: str | Path | Space = SPACE
) -> None:
    """Check that a family reads back its own records, and that they satisfy its schema. `recorded`: the
    conversations to try; by default, invented ones about `space`, a shipped space's name, a file or a
    Space."""
    check = begin_check("family", family)
    about = find_space(space)
    if recorded is None:
        fits = check.value("`fits` raises", lambda: family.fits(about))
        check.that(isinstance(fits, bool), f"`fits` returns {fits!r}, not True or False")
        check.that(fits, f"`fits` refuses the space {about.name}; give a `space` that it takes")
        recorded = [*_invent_records(family, about)]
    records = [(one, _make_record(check, family, one)) for one in recorded]
    for one, record in reversed(records):  # the last one read is not the last one made
        _check_record(check, family, one, record)
    made = b"".join(record for _, record in records)
    check.require_same_elsewhere("its records", made, _record_all, family, [one for one, _ in records])
    cut = [records[0][1].rstrip()[:-1]] if records else []
    for damaged in (b"", b"{}", b"[]", b'{"id": 3}', b"null", b"\xff", *cut):
        try:
            family.read(damaged)
        except (ValueError, msgspec.MsgspecError):
            continue
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            check.fail(
                f"`read` raises {type(error).__name__} for {damaged!r}; it has to be a ValueError", error
            )
        check.fail(f"`read` takes {damaged!r} for a record")
    others: tuple[Any, ...] = ({"nothing": "known"}, {"id": "c-000000-r0"}, {}, [], "text", 3, None)
    for other in others:
        known = check.value(f"`recognizes` raises for {other!r}", family.recognizes, other)
        check.that(known is False, f"`recognizes` returns {known!r} for {other!r}, not False")
    defaults = part_of(family, KindDefaults)
    groups = check.value("`groups` raises", lambda: defaults.groups(about.names))
    right = all(isinstance(name, str) and isinstance(members, tuple) for name, members in groups.items())
    check.that(right, "`groups` gives no tuples of dimensions by name")


def _make_record(check: Check, family: Family, recorded: Recorded) -> bytes:
    """Return the record of a conversation, which is the same each time."""
    before = msgspec.json.encode(recorded)
    record = check.value("`record` raises", family.record, recorded)
    check.that(isinstance(record, bytes), f"`record` returns {describe_type(record)}, not bytes")
    check.that(msgspec.json.encode(recorded) == before, "`record` changes the conversation that it is given")
    again = check.value("`record` raises the second time", family.record, recorded)
    check.that(again == record, "`record` returns other bytes for the same conversation")
    return bytes(record)


def _record_all(family: Family, recorded: Iterable[Recorded]) -> bytes:
    return b"".join(family.record(one) for one in recorded)


def _check_record(check: Check, family: Family, recorded: Recorded, record: bytes) -> None:
    decoded = check.value("`record` returns no JSON", lambda: msgspec.json.decode(record))
    check.that(
        is_valid(record, family.schema), f"a record does not satisfy the schema {family.schema}: {record!r}"
    )
    change = check.value("`read` raises for its own record", lambda: find_change(family, recorded, record))
    check.that(change is None, f"does not read back what it records: {change}")
    again = family.read(record)
    same = type(again) is Recorded and msgspec.convert(msgspec.to_builtins(again), Recorded) == again
    check.that(same, "`read` returns another type than Recorded, or a list in place of a tuple")
    known = check.value("`recognizes` raises", lambda: family.recognizes(decoded))
    check.that(known, "`recognizes` does not know its own record")
    filed = check.value("`read_file` raises for its own record", lambda: family.read_file(decoded))
    check.that(
        isinstance(filed, FiledRecord), f"`read_file` returns {describe_type(filed)}, not a FiledRecord"
    )
    roles = [turn.role for turn in recorded.conversation.turns]
    same = filed.id == recorded.id and [turn.role for turn in filed.speech.turns] == roles
    check.that(same, "`read_file` has another `id`, or turns of other roles, than the record")


def _invent_records(family: Family, space: Space) -> Iterator[Recorded]:
    """Yield invented conversations of many forms about a space."""
    holds_events = part_of(family, RecordContents).holds_events
    sampler = Sampler(space, seed=7, design="even", strength=2)
    roles = [role.name for role in (space.roles or part_of(family, KindDefaults).roles)]
    for index, (probability, ended) in enumerate(itertools.product((None, 0.0, 0.375, 1.0), (False, True))):
        count = 40 if index == 7 else 2 + index
        turns = tuple(
            Turn(roles[place % len(roles)], _TEXTS[(place + index) % len(_TEXTS)]) for place in range(count)
        )
        if index == 6:  # one side speaks twice, and repeats itself
            turns = (*turns[:3], turns[2], msgspec.structs.replace(turns[2], text="And more."), *turns[3:])
        repairs, flags = (("end_marker",), ("loop",)) if index % 3 == 1 else ((), ())
        events = ({"event": "note", "time": 1.5, "turn": 1},) if holds_events and index % 3 == 2 else ()
        ended_by = turns[-1].role if ended else None
        branch = 1 if index == 5 else None
        made = Conversation(turns, probability, ended_by, repairs, flags, branch, None, events)
        name = make_record_id("made-up", index, 0)
        yield Recorded(name, sampler.scenario(index), made, make_provenance(index, made))


def make_provenance(index: int, made: Conversation) -> Provenance:
    return Provenance(
        scenario=index, seed=7, replicate=0, protocol="oneshot", backend="simulator", model="some-model",
        simulated=True, template_sha256="a" * 64, space_sha256="b" * 64, attempts=1, finish_reason="stop",
        usage=Usage(100, 50), repairs=made.repairs, flags=made.flags, branch=made.branch,
    )  # fmt: skip
