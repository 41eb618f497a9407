"""Short lessons as samples, and measures run over them."""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

from hypothesis import strategies as st

from edgen.core.registry import find, register_temporarily
from edgen.core.values import Role, Turn
from edgen.domains.education.family import EDUCATION
from edgen.evaluation.sample import DataSet, Sample, cut
from edgen.evaluation.shared import Count, Shared
from tests.scenarios import scenario_of

T = TypeVar("T")
ROLES: dict[str, Role] = {"T": "Teacher", "S": "Student"}
LECTURE = "direct instruction/lecture-based learning"
TALK = "interactive learning/class discussions/inquiry-based learning"
HANDS = "hands-on activities/real-world applications"
QUIZ = "formative assessment"
TALES = "creative expression/story telling/gamification"


def lesson(
    *lines: str,
    index: int = 0,
    topic: str = "rivers",
    likes: str = LECTURE,
    has: str = TALK,
    student: str = "and gets rude otherwise",
    teacher: str = "and gives up otherwise",
    probability: float | None = None,
) -> Sample:
    """Return a lesson: `"T Hello.", "S Hi."` under a scenario."""
    turns = tuple(Turn(ROLES[line[0]], line[2:]) for line in lines)
    return Sample(
        id=f"lesson-{index}",
        source="test",
        split=None,
        scenario=scenario_of(index, topic, likes, student, has, teacher),
        turns=turns,
        entries=len(turns),
        probability=probability,
    )


def count_of(measure: str, **data: Any) -> Count[Any]:
    """Return a new count of a measure over a data set of Education Dialogue, or that of `data`.

    The results of the measure are checked as if a plugin returned them.
    """
    given = {"family": EDUCATION, "roles": EDUCATION.roles, **data}
    shared = Shared(DataSet(name="any", samples=lambda: iter(()), **given))
    with register_temporarily("measure", measure, copy(find("measure", measure))):
        shared.start([measure])
        return shared.count(measure)


def measured(measure: Count[T], *samples: Sample) -> T:
    """Return the result of a measure for these lessons."""
    for sample in samples:
        measure.see(sample, cut(sample.turns))
    return measure.result()


_PHRASES = st.one_of(
    st.sampled_from([LECTURE, TALK, HANDS, QUIZ, TALES, "and might tell it to the teacher", "", "/"]),
    st.text(),
)
_TEXTS = st.one_of(
    st.text(),
    st.sampled_from(
        ["Can't you just tell me?", "*jumps*", "class discussions", "What do you think?", "…?!", "\ud800"]
    ),
)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Draw any valid sample."""
    turns = draw(st.lists(st.builds(Turn, st.sampled_from(["Teacher", "Student"]), _TEXTS), max_size=6))
    scenario = scenario_of(draw(st.integers(0, 5)), *[draw(_PHRASES) for _ in range(5)])
    probability = draw(st.one_of(st.none(), st.floats(0, 1), st.just(float("nan"))))
    return Sample(
        id="x", source="test", split=None, scenario=scenario, turns=tuple(turns), entries=len(turns),
        probability=probability,
    )  # fmt: skip
