"""Pictures of machines: valid SVG for any names, without overlapping elements."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import pytest

from edgen.core import resources
from edgen.domains.guided.machines.draw import draw_machine
from edgen.domains.guided.machines.folder import MachineError
from edgen.domains.guided.machines.layout import Box, lay_out
from edgen.domains.guided.machines.load import load_machine
from edgen.domains.guided.machines.model import Machine, State
from tests.domains.guided.machines.folders import random_machine

SVG = "{http://www.w3.org/2000/svg}"


def cards(picture: str) -> dict[str, tuple[float, float, float, float]]:
    """Return each card's left, top, right and bottom, by the name that the card begins with."""
    found = {}
    for group in ElementTree.fromstring(picture).iter(f"{SVG}g"):
        title, box = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        if title is not None and box is not None and box.get("rx") == "7":
            x, y = map(float, re.findall(r"[\d.]+", group.get("transform", "")))
            name = (title.text or "").split("\n")[0]
            found[name] = (x, y, x + float(box.get("width", 0)), y + float(box.get("height", 0)))
    return found


@pytest.mark.parametrize("name", resources.list_shipped("machines"))
def test_no_card_stands_on_another(name: str) -> None:
    machine = load_machine(resources.find("machines", name))
    picture = draw_machine(machine)
    found = cards(picture)
    assert found.keys() == machine.states.keys()
    for a, b in itertools.combinations(found.values(), 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    width, height = (float(ElementTree.fromstring(picture).get(key, 0)) for key in ("width", "height"))
    assert all(x >= 0 and y >= 0 and right <= width and low <= height for x, y, right, low in found.values())


@pytest.mark.parametrize("seed", range(25))
def test_random_machines_are_drawn_whole(seed: int) -> None:
    machine = random_machine(seed)
    assert cards(draw_machine(machine)).keys() == machine.states.keys()
    assert draw_machine(machine) == draw_machine(machine)


def test_counts_are_shown_and_what_never_happened_is_grey() -> None:
    machine = load_machine(resources.find("machines", "lesson_plan"))
    picture = draw_machine(machine, {("start", "greet"): 1_234, ("greet", "announce_topic"): 1_200})
    assert (
        "2 of 41 states that say something were visited, 2 of 79 transitions were taken; 2,434 choices in all"
        in picture
    )
    assert ">1,234<" in picture
    assert "never taken" in picture
    assert "never taken" not in draw_machine(machine)


def test_names_and_texts_cannot_break_out_of_the_picture() -> None:
    evil = '<script>alert("x")</script>&\x07\u202e'
    machine = Machine(
        name=evil,
        description=evil,
        states={
            "start": State(name="start", transitions=(evil,)),
            evil: State(name=evil, formulations=(evil,), transitions=("nowhere",)),
        },
    )
    picture = draw_machine(machine)
    assert "<script" not in picture
    assert "\x07" not in picture
    assert ElementTree.fromstring(picture).tag == f"{SVG}svg"
    assert "not there" in picture


def test_lines_run_to_the_right_and_pass_no_box() -> None:
    boxes = {
        name: Box(40 + 10 * i, {other: 5.0 * n for n, other in enumerate("abcdefgh")})
        for i, name in enumerate("abcdefgh")
    }
    edges = [
        ("a", "b"),
        ("a", "c"),
        ("b", "d"),
        ("c", "d"),
        ("a", "d"),
        ("d", "a"),
        ("d", "e"),
        ("a", "e"),
        ("b", "h"),
        ("f", "g"),
    ]
    layout = lay_out(boxes, edges)
    assert ("d", "a") not in layout.lanes
    assert all(layout.columns[a] < layout.columns[b] for a, b in layout.lanes)
    assert len(layout.lanes["a", "e"]) == layout.columns["e"] - layout.columns["a"] - 1 == 2
    for (a, _), lanes in layout.lanes.items():
        for column, y in enumerate(lanes, layout.columns[a] + 1):
            for name, box in boxes.items():
                if layout.columns[name] == column:
                    assert not layout.tops[name] <= y <= layout.tops[name] + box.height
    assert min(layout.tops.values()) >= 0


def test_lines_cross_no_more_than_they_have_to() -> None:
    ports = {"x": 0.0, "y": 0.0, "z": 0.0}
    boxes = {name: Box(20, ports) for name in ("a", "b", "c", "x", "y", "z")}
    layout = lay_out(boxes, [("a", "z"), ("b", "y"), ("c", "x")])
    order = sorted("abc", key=layout.tops.__getitem__)
    assert sorted("xyz", key=layout.tops.__getitem__) == [
        {"a": "z", "b": "y", "c": "x"}[one] for one in order
    ]


def test_a_machine_that_is_too_large_for_a_picture_is_refused() -> None:
    leads = {i: tuple(f"s{(i * k + k) % 200}" for k in range(1, 4)) for i in range(200)}
    states = {f"s{i}": State(name=f"s{i}", formulations=("x",), transitions=leads[i]) for i in range(200)}
    assert len(cards(draw_machine(Machine(name="m", states=states, initial="s0")))) == 200
    more = {f"s{i}": State(name=f"s{i}") for i in range(1_001)}
    with pytest.raises(MachineError, match="1,001 states are too many for a picture of at most 1,000"):
        draw_machine(Machine(name="m", states=more))
