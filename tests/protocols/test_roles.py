"""Self-play of any roles: the order of speakers, their prompts, and the job's settings for them."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.config import Branch, parse_job, with_speakers
from edgen.core.errors import JobError
from edgen.core.forms import Form
from edgen.core.values import Conversation, Message, Rejection, Reply, Request, Scenario
from edgen.prompting import scenario_variables
from edgen.protocols.base import Rules
from edgen.protocols.selfplay import CLOSING_STEP, SELFPLAY, Selfplay
from edgen.space import SpaceRole
from tests.dose import dose

pytestmark = pytest.mark.unit

NAMES = ("Tutor", "Learner", "Learner2", "Parent")
DIMENSIONS = ("topic", "misconception", "learner", "tutor_style", "aim", "mood")


class Shows:
    """A template that shows all its variables."""

    schema: bytes | None = None

    def form(self, form: Form) -> Form | None:
        return None

    def messages(self, variables: dict[str, Any]) -> tuple[Message, ...]:
        return (Message("system", f"You speak. {sorted(variables.items())}"), Message("user", "It begins."))


@st.composite
def casts(draw: st.DrawFn) -> tuple[SpaceRole, ...]:
    count = draw(st.integers(2, 4))
    sees = st.sets(st.sampled_from(DIMENSIONS)).map(lambda names: tuple(sorted(names)))
    return tuple(SpaceRole(name, draw(sees)) for name in NAMES[:count])


def play(
    cast: tuple[SpaceRole, ...],
    scenario: Scenario,
    replicate: int = 0,
    branch: Branch | None = None,
    **how: Any,
) -> tuple[Conversation | Rejection, list[Request]]:
    """Return a conversation in which each turn is a different word, with every request."""
    rules = Rules(asks=1, seed=7, settings=Selfplay(**how), branch=branch, roles=cast)
    prompts: Any = {use: Shows() for use in (*(role.name.lower() for role in cast), "closing")}
    protocol = SELFPLAY.start(scenario, replicate, prompts, rules)
    asked: list[Request] = []
    try:
        request = next(protocol)
        while True:
            asked.append(request)
            step = request.address.step
            request = protocol.send(
                Reply("0.5" if step == CLOSING_STEP else f"Word {step} of {request.role}.")
            )
    except StopIteration as end:
        return end.value, asked


def scenario_of(secrets: list[str]) -> Scenario:
    return Scenario(2, {name: f"⟨{name}⟩{secret}" for name, secret in zip(DIMENSIONS, secrets, strict=True)})


@settings(max_examples=dose(10, 40))
@given(
    casts(),
    st.lists(st.text("abcde ", max_size=5), min_size=6, max_size=6),
    st.sampled_from([None, "judge", 0, 1]),
    st.booleans(),
)
def test_no_request_of_a_role_holds_what_it_does_not_see(
    cast: tuple[SpaceRole, ...], secrets: list[str], closing: Any, weighted: bool
) -> None:
    scenario = scenario_of(secrets)
    who = cast[closing].name.lower() if isinstance(closing, int) else closing
    order = {role.name: number + 1 for number, role in enumerate(cast)} if weighted else None
    result, asked = play(cast, scenario, closing=who, order=order, max_turns=9)
    assert isinstance(result, Conversation)
    sees = {role.name.lower(): role.sees for role in cast}
    for request in asked:
        text = "".join(message.content for message in request.messages)
        for name, value in scenario.values.items():
            if request.role != "judge":
                assert (value in text) is (name in sees[request.role])


def test_a_topic_s_level_is_not_another_dimension_s() -> None:
    cast = (SpaceRole("Tutor", ("topic",)), SpaceRole("Learner", ("topic", "level")))
    scenario = Scenario(0, {"topic": "Cells", "level": "B1"}, {"topic": {"subject": "Biology"}})
    _, asked = play(cast, scenario, max_turns=4)
    for request in asked:
        text = "".join(message.content for message in request.messages)
        assert ("B1" in text) is (request.role == "learner")
        assert "Biology" in text
    assert scenario_variables(scenario)["level"] == "B1"


def turns(cast: tuple[str, ...], count: int, **how: Any) -> list[str]:
    return [*itertools.islice(Selfplay(**how).speakers(cast, 7, 2), count)]


def test_the_order_of_turns() -> None:
    two, three = NAMES[:2], NAMES[:3]
    assert turns(two, 4) == ["Tutor", "Learner", "Tutor", "Learner"]
    assert turns(two, 3, first="learner") == ["Learner", "Tutor", "Learner"]
    assert turns(three, 4) == ["Tutor", "Learner", "Learner2", "Tutor"]
    listed = ("Tutor", "Learner", "Tutor", "Tutor", "Learner2")
    assert turns(three, 7, order=listed) == [*listed, "Tutor", "Learner"]
    assert turns(three, 2, order=("tutor", "learner2"), first="Learner2") == ["Learner2", "Tutor"]


def test_a_drawn_order_is_the_same_again_and_nobody_speaks_twice_in_a_row() -> None:
    weights = {"Tutor": 2.0, "Learner": 1.0, "Learner2": 1.0}
    drawn = turns(NAMES[:3], 3_000, order=weights, first="learner")
    assert drawn == turns(NAMES[:3], 3_000, order=weights, first="learner")
    assert drawn[0] == "Learner"
    assert all(one != other for one, other in itertools.pairwise(drawn))
    assert drawn.count("Tutor") > 1.25 * drawn.count("Learner")
    assert [*itertools.islice(Selfplay(order=weights).speakers(NAMES[:3], 7, 3), 50)] != drawn[:50]


def test_who_hears_two_others_is_told_who_speaks() -> None:
    cast = tuple(SpaceRole(name, ("topic",)) for name in NAMES[:3])
    result, asked = play(cast, Scenario(0, {"topic": "Cells"}), max_turns=4)
    assert isinstance(result, Conversation)
    assert [turn.role for turn in result.turns] == ["Tutor", "Learner", "Learner2", "Tutor"]
    assert asked[2].messages[-1].content == "Tutor: Word 0 of tutor.\n\nLearner: Word 1 of learner."
    assert [message.content for message in asked[3].messages[-2:]] == [
        "Word 0 of tutor.",
        "Learner: Word 1 of learner.\n\nLearner2: Word 2 of learner2.",
    ]


@pytest.mark.parametrize(("at", "left"), [(1, 1), (2, 4)])
def test_a_branch_leaves_at_a_turn_of_any_role(at: int, left: int) -> None:
    cast = tuple(SpaceRole(name, ("topic",)) for name in NAMES[:3])
    branch = Branch(at=at, role="learner")
    result, asked = play(cast, Scenario(0, {"topic": "Cells"}), 1, branch, max_turns=7)
    assert isinstance(result, Conversation)
    assert result.branch == left
    assert [request.address.task for request in asked] == [0] * left + [1] * (7 - left)


JOB = {"name": "x", "conversations": 2, "space": "./s.yaml", "protocol": "selfplay", "backends": {"default": {"type": "simulator"}}}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"backends": {"tutor": {"type": "simulator"}}}, "$.backends.learner: this key is missing"),
        ({"backends": {"default": {"type": "simulator"}, "techer": {"type": "simulator"}}}, "$.backends.techer: unknown role (known: default, tutor, learner, judge, annotator)"),
        ({"prompts": {"examiner": "x"}}, "$.prompts.examiner: unknown prompt (known: tutor, learner, closing, oracle, annotator)"),
        ({"role_words": {"Examiner": ["Proctor"]}}, "$.role_words.Examiner: unknown role (known: Tutor, Learner)"),
        ({"role_words": {"Tutor": ["learner"]}}, "$.role_words.Tutor[0]: 'learner' is what the learner is called"),
        ({"selfplay": {"first": "teacher"}}, "$.selfplay.first: the space has no role 'teacher' (known: tutor, learner)"),
        ({"selfplay": {"closing": "student"}}, "$.selfplay.closing: the space has no role 'student'"),
        ({"selfplay": {"order": ["Tutor", "Parent"]}}, "$.selfplay.order: the space has no role 'Parent'"),
        ({"selfplay": {"order": ["Tutor"]}}, "$.selfplay.order: a conversation needs two roles"),
        ({"selfplay": {"order": {"Tutor": 0}}}, "$.selfplay.order: "),
        ({"selfplay": {"order": "Tutor"}}, "$.selfplay.order: "),
        ({"branch": {"role": "student"}, "replicates": 2}, "$.branch.role: the space has no role 'student'"),
        ({"branch": {"role": "learner", "at": 9}, "replicates": 2, "selfplay": {"max_turns": 8}}, "$.branch.at: that is turn 18"),
    ],
)  # fmt: skip
def test_what_a_space_s_roles_do_not_allow_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(JobError) as error:
        with_speakers(parse_job({**JOB, **change}, "job.yaml"), NAMES[:2])
    assert any(str(problem).startswith(said) for problem in error.value.problems), error.value.problems


def test_a_job_of_any_roles_is_taken() -> None:
    job = {
        **JOB,
        "selfplay": {"order": {"Tutor": 2, "Learner": 1}, "closing": "learner"},
        "branch": {"role": "Tutor"},
        "replicates": 2,
    }
    taken = with_speakers(parse_job(job, "job.yaml"), NAMES[:2])
    assert SELFPLAY.roles(taken) == ("tutor", "learner")
    assert msgspec.to_builtins(taken.protocol_settings["selfplay"])["order"] == {"Tutor": 2.0, "Learner": 1.0}
