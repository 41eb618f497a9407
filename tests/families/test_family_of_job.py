"""The family of a job provides templates, the judged role and words, also from the space alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

import edgen
from edgen.config import parse_job
from edgen.core import registry
from edgen.core.errors import JobError
from edgen.core.pair import Candidate
from edgen.core.values import Rejection, Turn
from edgen.families.base import defaults_of, family_of
from edgen.families.dialogue import Dialogue
from edgen.families.reader import KindDefaults
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import make_plan
from edgen.protocols.oracle import CandidatePair, select_turns
from edgen.space import Space
from edgen.store.run_reader import RunReader

pytestmark = pytest.mark.unit

JOB = {
    "name": "t", "seed": 3, "conversations": 3, "space": "education_dialogue",
    "backends": {"default": {"type": "simulator"}},
}  # fmt: skip


class OfVisits(KindDefaults, Dialogue):
    name = "of_visits"
    judged = "Student"
    templates: ClassVar[dict[str, str]] = {"conversation": "plain_conversation", "judge": "oracle_roles"}
    probability_clause = "that the visitor comes again"


class OfNothing(Dialogue):
    name = "of_nothing"


class OfOtherSpaces(Dialogue):
    name = "of_other_spaces"

    def fits(self, space: Space) -> bool:
        return False


@pytest.fixture(autouse=True)
def _added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_added", dict(registry._added))
    for one in (OfVisits(), OfNothing(), OfOtherSpaces()):
        registry.add("family", one.name, one)


def plan_of(**more: Any) -> Any:
    return make_plan(parse_job({**JOB, **more}, "t"), AllowedFiles(Path.cwd(), None))


def test_its_templates_are_the_usual_ones() -> None:
    named = {name: plan_of(**keys).templates["default"].name for name, keys in {
        "own": {"family": "of_visits"}, "none": {"family": "of_nothing"}, "no family": {},
    }.items()}  # fmt: skip
    usual = defaults_of(plan_of().space).templates["conversation"]
    assert named == {"own": "plain_conversation", "none": usual, "no family": usual}


def test_its_judged_role_is_the_one_that_judges_compare() -> None:
    for place, shown in (("Student", True), ("Teacher", False)):
        plan = plan_of(family="of_visits")
        shared = (Turn("Teacher", "Hello."),) if place == "Student" else ()
        sides = [
            Candidate(id=text, scenario=0, replicate=number, turns=(*shared, Turn(place, text)))
            for number, text in enumerate(("Yes.", "No."))
        ]
        found = select_turns(CandidatePair(plan.space, plan.scenario(0), "a", *sides), "response")
        assert isinstance(found, Rejection) is not shown


def test_its_words_are_on_the_card(tmp_path: Path) -> None:
    for family, said in (("of_visits", "that the visitor comes again"), ("of_nothing", None)):
        run = edgen.generate({**JOB, "family": family}, output=tmp_path / family, progress=False)
        with RunReader(run.folder) as reader:
            assert family_of(reader.space) is reader.family
        run.export("hf", tmp_path / f"{family}-hf", files="jsonl")
        text = (tmp_path / f"{family}-hf" / "README.md").read_text("utf-8")
        assert "that the student understood" not in text
        assert said is None or said in text


def test_a_family_that_does_not_fit_is_refused_by_the_name_of_the_space() -> None:
    with pytest.raises(JobError) as refused:
        plan_of(family="of_other_spaces")
    assert str(refused.value) == (
        "job with the space education_dialogue: 1 problem:\n"
        "  $.family: of_other_spaces does not fit the dimensions and roles of education_dialogue"
    )
