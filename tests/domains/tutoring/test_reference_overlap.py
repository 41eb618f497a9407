"""The overlap of responses with references: BLEU by hand, on CIMA's release, and of sessions."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

import edgen
from edgen.core.errors import UsageError
from edgen.core.values import Scenario, Turn
from edgen.domains.tutoring.measures import reference_overlap as measured
from edgen.domains.tutoring.measures.best_of_others import reference_overlap
from edgen.evaluation.data_sets import open_data_sets
from edgen.evaluation.measuring import measure, render
from edgen.evaluation.sample import Sample, Words


@pytest.mark.parametrize(
    ("response", "references", "bleu"),
    [
        ("the cat sat", ["the cat sat"], 100.0),
        # All n-grams of the three words match; one word shorter than the reference of four: exp(1 - 4/3).
        ("the cat sat", ["the cat sat down"], 100 * math.exp(-1 / 3)),
        ("the cat sat", ["no word here", "the cat sat down"], 100 * math.exp(-1 / 3)),
        ("the cat sat", ["no word here"], 0.0),
        # Unigrams 3/4, bigrams 2/3, trigrams 1/2; the only 4-gram is smoothed to a half.
        ("the cat sat up", ["the cat sat down"], 100 * (3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** (1 / 4)),
    ],
)
def test_the_best_reference_counts(response: str, references: list[str], bleu: float) -> None:
    found = reference_overlap([(response, references, 0)])
    assert found.bleu is not None
    assert found.bleu.value == pytest.approx(bleu)
    assert (found.bleu.low, found.bleu.high) == (None, None), "one group tells of no other"
    assert found.scored_by[0].startswith("nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp")


def test_the_interval_is_over_groups() -> None:
    """Repeated texts within a group count once, and the same texts give the same interval."""
    one = [("a b c d", ["a b c d" if group % 2 else "x y z w"], group) for group in range(40)]
    apart, alike = reference_overlap(one).bleu, reference_overlap(one * 5).bleu
    assert apart is not None and alike is not None  # noqa: PT018
    assert apart.value == pytest.approx(50)
    assert alike.value == pytest.approx(50)
    assert (apart.low, apart.high) == (alike.low, alike.high)
    assert apart.low is not None and apart.high is not None  # noqa: PT018
    # 50 ± 2.02 · 50 / √39, by Student's t
    assert (apart.low, apart.high) == (pytest.approx(34, abs=3), pytest.approx(66, abs=3))
    assert (alike.n, alike.scenarios) == (200, 40)


def test_a_response_without_a_reference_is_a_sentence() -> None:
    with pytest.raises(UsageError, match="has no reference to be scored against: 'hello'"):
        reference_overlap([("hello", [], 0)])
    assert reference_overlap([]).bleu is None


def test_where_an_extra_is_missing_it_is_said(monkeypatch: pytest.MonkeyPatch, sample: Sample) -> None:
    count = measured.MEASURE.start(None)  # type: ignore[arg-type]
    count.see(sample, Words())
    assert count.result() is not None
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    monkeypatch.setattr(sys, "path", [])
    sys.path_importer_cache.clear()
    assert count.result() is None
    assert "This needs sacrebleu, of the extra 'bleu'" in " ".join(measured.MEASURE.lines(None))
    with pytest.raises(UsageError, match="Overlaps with references need sacrebleu, of the extra 'bleu'"):
        reference_overlap([("a", ["b"], 0)])


@pytest.fixture
def sample() -> Sample:
    others = (Turn("Tutor", "It is gatto."), Turn("Tutor", "Think again."))
    turns = (
        Turn("Student", "cane?"),
        Turn("Tutor", "It is gatto!", alternatives=others),
        Turn("Tutor", "Alone."),
    )
    return Sample(id="x", source="x", split=None, scenario=Scenario(0, {}), turns=turns, entries=3)


def test_each_response_is_scored_against_the_others(sample: Sample) -> None:
    count = measured.MEASURE.start(None)  # type: ignore[arg-type]
    count.see(sample, Words())
    found = count.result()
    texts = ["It is gatto!", "It is gatto.", "Think again."]
    bleu = BLEU(effective_order=True)
    best = [max(bleu.sentence_score(one, [other]).score for other in texts if other != one) for one in texts]
    assert found is not None and found.bleu is not None  # noqa: PT018
    assert found.responses == 3
    assert found.bleu.value == pytest.approx(sum(best) / 3)


@pytest.mark.integration
def test_the_release(shared_data: Path) -> None:
    """Of 1,135 contexts, 50 have one response. The mean comes from sacrebleu 2.6.0, over all pairs."""
    (data,) = open_data_sets([shared_data / "cima_prep_head.json"])
    found = measure(data, ["reference_overlap"])
    value = found.values["reference_overlap"]
    assert value.responses == 3_315 - 50
    assert value.bleu.value == pytest.approx(13.73, abs=0.005)
    assert value.bleu.low < 13.73 < value.bleu.high
    assert any("best BLEU of the others     13.7" in line for line in render(found))


def test_sessions_and_other_conversations(tmp_path: Path) -> None:
    job = {
        "name": "t",
        "conversations": 2,
        "space": "italian_shapes",
        "protocol": "tutoring",
        "tutoring": {"student_turns": 3, "responses": 1},
        "backends": {"default": {"type": "simulator"}},
    }
    run = edgen.generate(job, output=tmp_path / "one", progress=False)
    assert run.stats(["reference_overlap"]).as_json()["reference_overlap"] is None
    more = edgen.generate(job, tutoring={"student_turns": 3}, output=tmp_path / "three", progress=False)
    assert more.stats(["reference_overlap"]).as_json()["reference_overlap"]["responses"] == 2 * 3 * 3
