"""The wording of values."""

from __future__ import annotations

import unicodedata
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.text import (
    escape_invisible,
    format_dollars,
    format_duration,
    format_points,
    format_signed,
    join_list,
    number,
    percent,
    shorten,
)
from edgen.evaluation.drawings import (
    SHARES,
    Axis,
    Bar,
    Bars,
    Cells,
    HistogramBars,
    Histograms,
    Interval,
    Intervals,
    Picture,
    format_mean,
    share_of,
)
from edgen.report.canvas import WIDTH, Canvas, configure_drawing
from edgen.report.charts import draw
from edgen.report.text_width import measure_width, truncate, truncate_ends
from edgen.stats.distributions import Distribution
from edgen.stats.intervals import Estimate

pytestmark = pytest.mark.unit


@given(st.text(st.characters(codec=None)))
def test_what_is_shown_is_visible_and_legal(text: str) -> None:
    found = escape_invisible(text)
    ElementTree.fromstring(f"<a>{found.replace('&', '').replace('<', '')}</a>")
    assert all(unicodedata.category(char) not in ("Cc", "Cs") or char in "\n\t" for char in found)
    assert "\u202e" not in found


@given(st.text(st.characters(codec=None), max_size=80), st.integers(4, 40))
def test_what_is_shortened_fits(text: str, width: int) -> None:
    found = shorten(text, width)
    assert sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in found) <= width
    assert "\n" not in found


@given(st.text(st.characters(codec=None), max_size=60))
def test_any_words_can_be_drawn(text: str) -> None:
    with configure_drawing():
        picture = Canvas(40)
        picture.write_text(10, 20, text)
        root = ElementTree.fromstring(picture.render_svg("p", escape_invisible(text)))
    drawn = "".join(node.text or "" for node in root.iter("text"))
    assert drawn.strip() == truncate(text, WIDTH).strip()


def test_numbers() -> None:
    assert [number(v) for v in (None, 0, 47234, 14.25, 0.18345, 3.14159, 1234.5, float("nan"))] == [
        "–", "0", "47,234", "14.2", "0.183", "3.14", "1,234", "–",
    ]  # fmt: skip
    assert number(-0.00001) == "0.0000"
    assert percent(0.96249) == "96.2%"
    assert [format_points(v) for v in (0.041, -0.041, 0.0, -0.0001)] == ["+4.1", "−4.1", "0.0", "0.0"]
    assert [format_signed(v) for v in (2, -2, 0)] == ["+2", "−2", "0"]
    assert [format_dollars(v) for v in (1.267, 0.0123, 0, -2.5, None)] == [
        "$1.27",
        "$0.0123",
        "$0.00",
        "−$2.50",
        "–",
    ]
    assert [format_duration(v) for v in (0.34, 12.44, 185, 7440, 1e-5)] == [
        "340 ms",
        "12.4 s",
        "3 min 05 s",
        "2 h 04 min",
        "0.01 ms",
    ]
    assert join_list(["a", "b", "c"]) == "a, b and c"


def test_what_no_page_can_hold_is_written_out() -> None:
    assert escape_invisible("a\ud800b\u0378c\U000e0080d") == "a\\ud800b\\u0378c\\U000e0080d"


def test_small_sums_keep_their_digits() -> None:
    values = (0.000_869, -0.000_004_21, 0.0999, 1e-15, -1e-15)
    assert [format_dollars(v) for v in values] == ["$0.000869", "−$0.00000421", "$0.0999", "$0.00", "$0.00"]


def test_a_cross_is_for_what_was_planned() -> None:
    with configure_drawing():
        chart = Cells(["a", "b"], 2, planned=[[0, 5], [3, 2]], accepted=[[0, 0], [3, 1]])
        svg = draw(Picture(name="c", title="c", chart=chart, caption="", alternative="c", tables=()))
    assert svg.count("×") == 1


def test_intervals() -> None:
    found = Estimate(value=0.962, low=0.951, high=0.973, n=10, scenarios=10)
    assert share_of(found) == "96.2% (95.1 to 97.3)"
    assert format_mean(found) == "0.96 (0.95 to 0.97)"
    assert share_of(Estimate(value=1.0, low=None, high=None, n=1, scenarios=1)) == "100.0%"


@given(st.text(st.characters(codec=None), max_size=80), st.integers(40, 400))
def test_what_is_fitted_is_no_wider_than_its_room(text: str, room: int) -> None:
    for cut in (truncate, truncate_ends):
        found = cut(text, room)
        assert measure_width(found) <= room
        assert "\n" not in found


def test_names_that_differ_at_their_ends_stay_apart() -> None:
    names = [f"an-arm-with-a-name-as-long-as-allowed-{place:02d}" for place in range(12)]
    assert len({truncate_ends(name, 100) for name in names}) == 12
    assert len({truncate(name, 100) for name in names}) == 1


def drawn(chart: Bars | Intervals | Histograms) -> str:
    with configure_drawing():
        return draw(Picture(name="c", title="c", chart=chart, caption="", alternative="c", tables=()))


def test_a_track_is_the_whole_of_a_share_and_of_nothing_else() -> None:
    rows = [Bar("a", 0.1, "10%"), Bar("b", 0.05, "5%")]
    assert drawn(Bars(rows)).count("--track") == 2
    assert "--track" not in drawn(Bars(rows, None))


def test_figures_that_are_not_known_are_drawn_as_nothing() -> None:
    nan, infinite = float("nan"), float("inf")
    for value in (nan, infinite):
        assert "nan" not in drawn(Bars([Bar("a", value, "–"), Bar("b", 0.5, "50%")])).lower()
    rows = [
        Interval("a", nan, 0.1, infinite, "–"),
        Interval("b", None, None, None, "–"),
        Interval("c", 0.5, 0.4, 0.6, "x"),
    ]
    assert "nan" not in drawn(Intervals(rows, SHARES)).lower()
    assert drawn(Intervals(rows[:2], Axis(), 0.0))
    assert drawn(Histograms([HistogramBars("a", Distribution(n=0))] * 4, SHARES))


def test_words_that_arms_share_stand_once() -> None:
    arms = [f"{words} · {arm}" for arm in ("one", "two") for words in ("turns", "words")]
    svg = drawn(Bars([Bar(label, 0.5, "50.0%") for label in arms]))
    assert [svg.count(f">{words}<") for words in ("turns", "words", "one", "two")] == [1, 1, 2, 2]
