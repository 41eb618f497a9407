"""The content of every report, read as a parser reads it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from edgen.report.gather import CUT
from edgen.report.page import write_report
from tests.execution.service import ROOT
from tests.report.conftest import KINDS

VOID = {"meta", "br", "path", "use"}


class Read(HTMLParser):
    """The elements of a page in order, with the open elements around each.

    Raises an error where tags do not nest.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes), tuple(self.open)))
        if tag not in VOID or "svg" in self.open:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes), tuple(self.open)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module", params=[*KINDS, "hostile"])
def report(request: pytest.FixtureRequest, reported: Callable[[str], Path]) -> str:
    written = (reported(request.param) / "report.html").read_bytes()
    assert len(written) < 2_000_000
    return written.decode()


def test_the_same_run_gives_the_same_bytes(reported: Callable[[str], Path], tmp_path: Path) -> None:
    """The run has arms, so every kind of picture occurs."""
    run = reported("arms")
    assert write_report(run, tmp_path / "again.html").path.read_bytes() == (run / "report.html").read_bytes()


def test_it_nests_and_names_everything_once(report: str) -> None:
    read = Read(report)
    ids = Counter(attributes["id"] for _, attributes, _ in read.elements if "id" in attributes)
    assert [name for name, count in ids.items() if count > 1] == []
    for tag, attributes, _ in read.elements:
        target = attributes.get("href") or ""
        assert tag != "a" or target.startswith("#")
        assert not target or target[1:] in ids


def test_it_loads_nothing(report: str) -> None:
    read = Read(report)
    assert {tag for tag, _, _ in read.elements} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
    } == set()
    assert not any("src" in attributes or "srcset" in attributes for _, attributes, _ in read.elements)
    style = report[report.index("<style>") : report.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert "default-src 'none'" in report


def test_every_picture_has_words_for_those_who_do_not_see_it(report: str) -> None:
    figures = re.findall(r"<figure.*?</figure>", report, re.DOTALL)
    assert figures
    for figure in figures:
        title = re.search(r"<h3>(.+?)</h3>", figure)
        assert title
        assert len(re.findall(r'<svg [^>]*role="img"[^>]*aria-label="[^"]{20,}"', figure)) == 1, title[1]
        caption = re.search(r"<figcaption>(.+?)</figcaption>", figure, re.DOTALL)
        assert caption
        assert len(caption[1]) > 30
        assert re.search(r'<details class="data">.*<td>', figure, re.DOTALL)


def test_every_table_and_each_of_its_columns_has_a_name_or_none(report: str) -> None:
    assert not re.search(r"<th[^>]*></th>", report)
    assert not re.search(r'aria-label="(?:"|, )', report)


def test_pictures_are_vectors_that_follow_the_page(report: str) -> None:
    for svg in re.findall(r"<svg.*?</svg>", report, re.DOTALL):
        root = ElementTree.fromstring(svg)
        styles = " ".join(node.get("style", "") for node in root.iter())
        assert "var(--" in styles
        assert not re.search(r"#[0-9a-f]{6}", styles)
        assert root.find(".//text") is not None
        assert root.find(".//image") is None


def test_the_contents_lead_to_every_section(report: str) -> None:
    sections = re.findall(r'<section id="([^"]+)">', report)
    assert re.findall(r'<li><a href="#([^"]+)">', report) == sections
    assert {"asked", "cost", "space", "again"} <= set(sections)
    assert ("refused" in sections) == ("figure-reasons" in report)


def test_nothing_of_this_machine_is_told(report: str) -> None:
    assert str(ROOT) not in report
    assert "/tmp/" not in report


def test_what_there_is_none_of_is_not_drawn(report: str) -> None:
    if "No conversation was accepted" in report:
        assert 'id="shape"' not in report
        assert 'id="conversations"' not in report
        assert "figure-outcomes" in report
        assert "figure-reasons" in report
    else:
        assert len(re.findall(r'<details class="card talked"', report)) == 12
    if "figure-forest" in report:
        assert "Arms side by side" in report


def test_a_long_reply_is_cut_and_says_so(report: str) -> None:
    replies = re.findall(r'<pre dir="auto">(.*?)</pre>', report, re.DOTALL)
    assert all(len(reply) < CUT * 6 for reply in replies)
    if "hostile" in report[:2000]:
        assert any("x" * 1000 in reply for reply in replies)
