"""The measure of layers: hand-made layers have known numbers, and the output fits a terminal and a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pytest

from edgen.config.label_set import LabelSet, make_inline_set
from edgen.core.values import Scenario, Turn
from edgen.evaluation.drawings import Picture, Table
from edgen.evaluation.layer_figures import LayerFigures
from edgen.evaluation.measures.labels import MEASURE
from edgen.evaluation.measuring import measure
from edgen.evaluation.panels import ArmResult
from edgen.evaluation.sample import DataSet, Sample
from edgen.evaluation.views import list_blocks, list_lines
from edgen.report.canvas import configure_drawing
from edgen.report.charts import draw
from edgen.store.layers import UnitLabels

MOVES = make_inline_set("moves", {"Ask": "asks", "Tell": "tells", "Praise": "praises"}, several=False)
Said = Mapping[str, str]  # labels by annotator, several with a blank between


def unit(turn: int | None, said: Said, most: str, role: str = "Tutor") -> UnitLabels:
    """Return a unit; `most` is the majority label, "" for a tie."""
    labels = {name: tuple(one.split()) for name, one in said.items()}
    return UnitLabels(
        id="x", turn=turn, role=None if turn is None else role, labels=tuple(most.split()), annotators=labels,
        tie=not most, agreement=None, text_sha256="",
    )  # fmt: skip


def figures(conversations: Sequence[Sequence[UnitLabels]], labels: LabelSet | None = MOVES) -> LayerFigures:
    """Yield the measure of one layer; each conversation has a scenario of its own and six turns."""

    def samples() -> Iterator[Sample]:
        turns = (Turn("Tutor", "x"),) * 6
        for index, units in enumerate(conversations):
            yield Sample(
                id=str(index), source="x", split=None, scenario=Scenario(index, {}), turns=turns, entries=6,
                labels={"layer": tuple(units)},
            )  # fmt: skip

    sets = {} if labels is None else {"layer": labels}
    data = DataSet(name="x", samples=samples, family=None, roles=(), label_sets=sets)
    found: LayerFigures = measure(data, ["labels"]).values["labels"]["layer"]
    return found


BY_HAND = [
    [unit(0, {"a": "Ask", "b": "Ask", "c": "Ask"}, "Ask"), unit(2, {"a": "Tell", "b": "Tell", "c": "Ask"}, "Tell"), unit(5, {"a": "Tell", "b": "Ask", "c": "Tell"}, "Tell")],
    [unit(0, {"a": "Ask", "b": "Ask"}, "Ask"), unit(2, {"a": "Ask", "b": "Tell"}, ""), unit(4, {"a": "Tell", "b": "Tell"}, "Tell", "Aide")],
]  # fmt: skip


def test_a_layer_by_hand() -> None:
    found = figures(BY_HAND)
    assert (found.units, found.ties, found.several) == (6, 1, False)
    assert found.annotators == {"a": 6, "b": 6, "c": 3}
    assert found.labels == ["Ask", "Tell", "Praise"]
    assert found.overall.counts == {"Ask": 2, "Tell": 3, "Praise": 0}
    assert found.overall.shares["Tell"].value == pytest.approx(3 / 5)
    assert (found.overall.shares["Tell"].n, found.overall.shares["Tell"].scenarios) == (5, 2)
    assert found.overall.mean is None
    assert {role: (one.units, one.ties) for role, one in found.roles.items()} == {
        "Tutor": (4, 1),
        "Aide": (1, 0),
    }
    assert {name: one.counts for name, one in found.roles["Tutor"].thirds.items()} == {
        "first": {"Ask": 2, "Tell": 0, "Praise": 0},
        "middle": {"Ask": 0, "Tell": 1, "Praise": 0},
        "last": {"Ask": 0, "Tell": 1, "Praise": 0},
    }
    assert found.roles["Tutor"].thirds["middle"].ties == 1
    # a tie is not a label: no transition goes through it
    assert found.transitions == (("Ask", "Tell", 1), ("Tell", "Tell", 1))


def test_annotators_by_hand() -> None:
    found = figures(BY_HAND)
    assert (found.agreement.units, found.agreement.units_by_all) == (6, 3)
    # of the three units labelled by all, pairs agree in 3, 1 and 1 of 3; 5 of 9 labels are Ask
    chance = (5 / 9) ** 2 + (4 / 9) ** 2
    assert found.agreement.fleiss == pytest.approx((5 / 9 - chance) / (1 - chance))
    between = {one.annotators: one for one in found.agreement.between}
    # a: 3 "Ask", 3 "Tell"; b: 3 "Ask", 3 "Tell"; equal in 4 of 6
    assert between["a", "b"].kappa == pytest.approx((4 / 6 - 1 / 2) / (1 - 1 / 2))
    assert between["a", "c"].n == 3
    confusion = {one.annotators: one for one in found.confusion}["a", "b"]
    assert confusion.pairs == (("Ask", "Ask", 2), ("Tell", "Tell", 2), ("Ask", "Tell", 1), ("Tell", "Ask", 1))
    both = confusion.labels["Ask"]
    assert (both.both, both.first, both.second, both.neither) == (2, 1, 1, 2)
    # against the others: of b, a and c where they agree, and a alone in the second conversation
    against = found.against_rest["b"]
    assert (against.units, against.exact and against.exact.value) == (5, pytest.approx(3 / 5))
    bias = against.labels["Ask"].bias
    assert bias is not None
    assert bias.value == 0


def test_numbers_on_a_scale_have_a_mean() -> None:
    scale = make_inline_set("quality", dict.fromkeys("12345", "a level"), several=False)
    found = figures([[unit(None, {"a": level}, level)] for level in "1335542"], scale)
    assert found.roles == {}
    assert found.overall.thirds == {}
    assert found.overall.mean is not None
    assert found.overall.mean.value == pytest.approx(23 / 7)
    assert found.overall.mean.low is not None
    assert found.overall.mean.low < 23 / 7
    assert found.agreement.units == 0
    assert found.transitions == ()
    assert not found.against_rest


def test_several_labels_and_a_set_that_nobody_noted() -> None:
    units = [unit(0, {"a": "P Q", "b": "P"}, "P"), unit(2, {"a": "Q R", "b": "Q R"}, "Q R")]
    found = figures([units] * 3, None)
    assert found.several
    assert found.labels == ["P", "Q", "R"]
    assert found.overall.shares["Q"].value == 0.5
    assert {(a, b): n for a, b, n in found.transitions} == {("P", "Q"): 3, ("P", "R"): 3}
    assert found.confusion[0].labels["Q"].both == 3
    assert found.confusion[0].labels["Q"].first == 3


def test_without_a_layer_nothing_is_told() -> None:
    data = DataSet(name="x", samples=partial(iter, ()), family=None, roles=())
    value = measure(data, ["labels"]).values["labels"]
    assert value == {}
    assert [*list_lines(MEASURE, value)] == []
    assert [*list_blocks(MEASURE, [ArmResult("", "x", value, {})])] == []


@pytest.mark.parametrize("labels", [12, 60])
def test_a_terminal_and_a_page_show_any_number_of_labels(labels: int) -> None:
    names = [f"Label {number} {'long ' * (number % 9)}".strip().replace(" ", "_") for number in range(labels)]
    units = [
        unit(place % 6, {"a": names[place % labels], "b": names[place * 3 % labels], "c": names[place % labels]}, names[place % labels], ("Tutor", "Learner")[place % 2])
        for place in range(labels)
    ]  # fmt: skip
    value = {"layer": figures([units, units], None)}
    lines = [*list_lines(MEASURE, value)]
    assert max(map(len, lines)) <= 78
    blocks = [*list_blocks(MEASURE, [ArmResult(arm, arm, value, {}) for arm in ("one", "two")])]
    pictures = [block for block in blocks if isinstance(block, Picture)]
    assert len({picture.name for picture in pictures}) == len(pictures) == 2 + 2 + 1 + 1 + 2 * 3
    with configure_drawing():
        for block in list_blocks(MEASURE, [ArmResult("", "one", value, {})]):
            assert not isinstance(block, Picture) or draw(block).startswith("<svg")
    tables = [*(block for block in blocks if isinstance(block, Table)), *(one for picture in pictures for one in picture.tables)]  # fmt: skip
    assert all(len(row) == len(table.head) for table in tables for row in table.rows)
