"""Sources of served turns: counted by hand, and for a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.core.values import Scenario, Turn
from edgen.domains.tutoring.measures.action_agreement import AgreementCount
from edgen.evaluation.sample import Sample
from tests.domains.tutoring.test_rounds import JOB
from tests.evaluation.said import count_of


def tutor(source: str, alternatives: int = 2, **data: Any) -> Turn:
    others = tuple(Turn("Tutor", "Other.", ("Question",)) for _ in range(alternatives))
    return Turn("Tutor", "Said.", ("Hint",), {"served": source, **data}, others)


def sample(number: int, *turns: Turn) -> Sample:
    said = [one for turn in turns for one in (Turn("Student", "Hm?", ("Guess",)), turn)]
    outcome = {"exercises": [], "round": number}
    return Sample(
        id="x",
        source="x",
        split=None,
        scenario=Scenario(number, {}),
        turns=tuple(said),
        entries=2,
        outcome=outcome,
    )


def test_sources_and_exposure_are_counted() -> None:
    count, place = count_of("served"), {"from": "a", "turn": 2, "response": 1}
    count.see(sample(1, tutor("dry"), tutor("template", 0), tutor("new", 0)), [])
    count.see(sample(2, tutor("pool", **place), tutor("pool", **place, nonsense=True)), [])
    count.see(sample(3, Turn("Tutor", "No pool.", ("Hint",))), [])
    found = count.result()
    assert found.turns == 5
    assert {source: one.value for source, one in found.sources.items()} == pytest.approx(
        {"pool": 0.4, "template": 0.2, "dry": 0.2, "new": 0.2}
    )
    assert found.nonsense == {"pool": 0.5, "template": 0, "dry": 0, "new": 0}
    assert found.by_round["2"] == (2, {"pool": 1.0})
    assert found.by_action["Guess"][0] == 5
    assert (found.responses, found.exposure, found.most) == (1, 2.0, 2)
    assert found.answered is not None
    assert found.answered.value == pytest.approx(0.8)


def test_a_served_turn_is_none_of_the_independent_responses() -> None:
    count = AgreementCount()
    count.see(sample(1, tutor("pool"), tutor("dry", 0)), [])
    found = count.result()
    assert (found.contexts, found.responses, found.agreed) == (1, 2, 1)


def test_arms_are_compared_in_it(tmp_path: Path) -> None:
    shares = {"pool": 0.0, "templates": 1.0}
    fallback = {name: dict.fromkeys(("Guess", "Question", "Affirmation"), of) for name, of in shares.items()}
    arms = {name: {"tutoring": {"pool": {"fallback": of}}} for name, of in fallback.items()}
    run = edgen.generate({**JOB, "arms": arms}, output=tmp_path / "run", progress=False)
    metrics = edgen.compare(run, output=tmp_path / "compared").metrics
    assert metrics["served_from_pool"].arms["pool"].value > 0
    assert metrics["served_from_pool"].arms["templates"].value == 0
    assert metrics["served_dry"].arms["templates"].value == 0
