"""Records are read back unchanged, with any content."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.errors import JobError
from edgen.core.values import Conversation, Event, Scenario, Turn, Usage
from edgen.domains.education.family import EDUCATION
from edgen.families.base import FiledRecord, Provenance, Recorded, family_of, with_marker
from edgen.families.dialogue import DIALOGUE
from edgen.space import Dimension, Entry, Space, SpaceRole
from edgen.validation.schema import is_valid
from edgen.validation.speech import read_speech
from tests.scenarios import DIMENSIONS, ROLES, make_five_list_scenario

pytestmark = pytest.mark.unit

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40)
NAMES = st.lists(st.sampled_from(("quotes", "numbers", "label")), unique=True, max_size=2).map(tuple)
SHA = "0" * 64


def conversations(roles: tuple[str, ...]) -> st.SearchStrategy[Conversation]:
    """Draw conversations in which each role speaks."""
    spoken = st.lists(st.builds(Turn, st.sampled_from(roles), TEXT), max_size=6)
    return st.builds(
        Conversation,
        spoken.map(lambda turns: (*(Turn(role, "Hello.") for role in roles), *turns)),
        st.none() | st.floats(0, 1),
        st.none() | st.sampled_from(roles),
        NAMES,
        NAMES,
        st.none() | st.integers(0, 9),
    )


SPOKEN = st.lists(
    st.sampled_from(
        ["So", " ", "a chat", "dialogue", "End of conversation", "x.", "?", ",", "(", '"', "2", "\x1f", "é"]
    ),
    min_size=1,
    max_size=5,
).map("".join)


@settings(max_examples=25)
@given(
    st.lists(st.builds(Turn, st.sampled_from(("Teacher", "Student")), SPOKEN), min_size=1, max_size=4),
    st.sampled_from(("Teacher", "Student", None)),
)
def test_what_is_said_is_what_a_look_at_the_marked_turns_finds(
    turns: list[Turn], ended_by: str | None
) -> None:
    conversation = Conversation(tuple(turns), ended_by=ended_by)
    recorded = Recorded(
        "a-000001-r0",
        make_five_list_scenario(1, dict.fromkeys(DIMENSIONS, "x")),
        conversation,
        provenance(1, conversation),
    )
    assert FiledRecord.of(recorded).speech == read_speech(with_marker(conversation))


def provenance(scenario: int, conversation: Conversation) -> Provenance:
    return Provenance(
        scenario=scenario, seed=7, replicate=1, protocol="selfplay", backend="simulator", model="m", simulated=True,
        template_sha256=SHA, space_sha256=SHA, attempts=2, finish_reason="stop", usage=Usage(3, 4),
        repairs=conversation.repairs, flags=conversation.flags, branch=conversation.branch,
        models={"teacher": "m"}, templates=None,
    )  # fmt: skip


@settings(max_examples=25)
@given(
    st.integers(0, 10**9),
    st.fixed_dictionaries(dict.fromkeys(DIMENSIONS, TEXT)),
    st.none() | TEXT,
    st.none() | TEXT,
    conversations(("Teacher", "Student")),
)
def test_education(
    index: int, values: dict[str, str], subject: str | None, level: str | None, conversation: Conversation
) -> None:
    scenario = make_five_list_scenario(index, values, subject, level)
    recorded = Recorded(f"x-{index:06d}-r1", scenario, conversation, provenance(index, conversation))
    data = EDUCATION.record(recorded)
    assert EDUCATION.read(data) == recorded
    assert is_valid(data, EDUCATION.schema)


DIMENSION = st.sampled_from(("persona", "level", "subject", "misconception", "value"))
FIELDS = st.dictionaries(
    st.sampled_from(("grade", "subject", "level", "source")),
    TEXT
    | st.integers(-9, 9)
    | st.booleans()
    | st.lists(TEXT, max_size=2)
    | st.dictionaries(TEXT, TEXT, max_size=2),
    min_size=1,
    max_size=3,
)


@st.composite
def scenarios(draw: st.DrawFn, base: tuple[str, ...] = ()) -> Scenario:
    """Draw any values of any dimensions, some with fields; `base` names dimensions that are always drawn."""
    values = {name: draw(TEXT) for name in base}
    values |= draw(st.dictionaries(DIMENSION, TEXT, min_size=0 if base else 1))
    fields = {name: draw(FIELDS) for name in draw(st.sets(st.sampled_from(sorted(values))))}
    return Scenario(draw(st.integers(0, 10**9)), values, fields)


@settings(max_examples=25)
@given(scenarios(DIMENSIONS), conversations(("Teacher", "Student")))
def test_education_with_more(scenario: Scenario, conversation: Conversation) -> None:
    recorded = Recorded("x", scenario, conversation, provenance(scenario.index, conversation))
    data = EDUCATION.record(recorded)
    assert EDUCATION.read(data) == recorded
    assert is_valid(data, EDUCATION.schema)


EVENTS = st.lists(
    st.fixed_dictionaries(
        {"event": TEXT, "time": st.floats(0, 1e9) | st.integers(0, 10**6), "turn": st.integers(0, 99)},
        optional={
            "state": st.none() | TEXT,
            "changes": st.dictionaries(TEXT, TEXT | st.booleans(), max_size=2),
        },
    ),
    max_size=3,
).map(tuple)


@settings(max_examples=25)
@given(scenarios(), conversations(("Tutor", "Learner", "Learner2")), EVENTS)
def test_dialogue(scenario: Scenario, conversation: Conversation, events: tuple[Event, ...]) -> None:
    conversation = msgspec.structs.replace(conversation, events=events)
    recorded = Recorded("x", scenario, conversation, provenance(scenario.index, conversation))
    data = DIALOGUE.record(recorded)
    assert DIALOGUE.read(data) == recorded
    assert is_valid(data, DIALOGUE.schema)
    assert DIALOGUE.read_file(msgspec.json.decode(data)).events == events


def test_what_is_no_event_is_left_out_of_a_file() -> None:
    good = {"event": "end", "time": 3, "turn": 2}
    bad = [{}, "end", {**good, "time": -1}, {**good, "turn": "2"}, {**good, "time": True}]
    turns = [{"role": "Tutor", "text": "Hello."}, {"role": "Learner", "text": "Hello."}]
    record = {"scenario": {"topic": "x"}, "conversation": turns, "events": [*bad, good]}
    assert DIALOGUE.read_file(record).events == (good,)


def space(names: tuple[str, ...], roles: tuple[SpaceRole, ...]) -> Space:
    dimensions = tuple(Dimension(name, (Entry("a"), Entry("b"))) for name in names)
    return Space(name="mine", dimensions=dimensions, roles=roles)


def test_the_space_decides_which() -> None:
    other = (SpaceRole("Tutor", ("topic",)), SpaceRole("Learner", ("topic",)))
    assert family_of(space(DIMENSIONS, ROLES)) is EDUCATION
    assert family_of(space(("grade", *DIMENSIONS), ROLES)) is EDUCATION
    assert family_of(space(DIMENSIONS[1:], ROLES)) is DIALOGUE
    assert family_of(space(DIMENSIONS, other)) is DIALOGUE
    assert family_of(space(DIMENSIONS, ROLES), "dialogue") is DIALOGUE
    with pytest.raises(JobError, match="education does not fit"):
        family_of(space(("topic",), other), "education")
