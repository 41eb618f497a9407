"""A report's section on preference pairs: the same as `edgen pairs --report`, with examples."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from edgen.evaluation.drawings import Picture, Table
from edgen.preferences.render import render
from edgen.report import pair_pictures
from edgen.report.gather import gather
from edgen.report.model import PairsReport
from tests.cli.command import Command
from tests.report.runs import made


@pytest.fixture(scope="module")
def pairs(reported: Callable[[str], Path]) -> PairsReport:
    found = gather(reported("pairs")).pairs
    assert isinstance(found, PairsReport)
    return found


def section(run: Path) -> str:
    found = re.search(r'<section id="pairs">(.*?)</section>', (run / "report.html").read_text(), re.DOTALL)
    assert found
    return html.unescape(found[1])


def test_the_page_holds_what_the_command_prints(
    reported: Callable[[str], Path], pairs: PairsReport, command: Command
) -> None:
    run = reported("pairs")
    printed = command("pairs", run, "--report").out
    assert printed.strip() == "\n".join(render(pairs.bias, pairs.probability_of)).strip()
    assert printed.strip() in section(run)


def test_counts_add_up_and_say_what_labels_rest_on(
    reported: Callable[[str], Path], pairs: PairsReport
) -> None:
    assert pairs.count == pairs.bias["pairs"]
    assert (
        pairs.labelled == sum(pairs.bias["labelled"].values()) == sum(pairs.rests.values()) == pairs.margins.n
    )
    assert pairs.left_out == pairs.bias["left_out"]
    assert pairs.simulated
    text = section(reported("pairs"))
    assert f"{pairs.labelled} of {pairs.count} pairs of 12 scenarios have a label" in text
    assert "oracle: verdicts on whole conversations, in both orders" in text


def test_every_judge_has_its_biases(pairs: PairsReport) -> None:
    judges = pairs.bias["judges"]
    assert len(judges) == 2
    found = {block.name: block for block in pair_pictures.render_blocks(pairs) if isinstance(block, Picture)}
    for name, words in (
        ("pairs-order", ("flips", "ties", "abstentions")),
        ("pairs-bias", ("shown first", "longer")),
    ):
        rows = [label for label, _ in found[name].tables[0].rows]
        for judge in judges:
            assert {f"{each} · {judge['model']} {judge['judge'][:6]}" for each in words} <= {*rows}
    tables = [block for block in pair_pictures.render_blocks(pairs) if isinstance(block, Table)]
    agreement = next(table for table in tables if table.head[0] == "agreement of sources")
    assert any("human" in row[0] and "probability" in row[0] for row in agreement.rows)
    names = " and ".join(row[0] for row in agreement.rows).split(" and ")
    assert {f"oracle {judge['judge'][:6]}" for judge in judges} <= {*names}
    alone = msgspec.structs.replace(pairs, bias={**pairs.bias, "judges": judges[:1]})
    (lone,) = (
        block
        for block in pair_pictures.render_blocks(alone)
        if isinstance(block, Table) and block.head == agreement.head
    )
    assert "oracle" in " and ".join(row[0] for row in lone.rows).split(" and ")


def test_examples_show_both_sides_from_where_they_part(pairs: PairsReport) -> None:
    clearest, closest, untold = pairs.examples
    assert clearest.why == "the clearest label"
    assert (
        {side.verdict for side in clearest.sides}
        == {"chosen", "rejected"}
        == {s.verdict for s in closest.sides}
    )
    assert untold.why.startswith("without a label: ")
    assert {side.verdict for side in untold.sides} == {""}
    for one in pairs.examples:
        a, b = one.sides
        assert a.turns[:1] != b.turns[:1]
        assert (one.before is None) is (one.shared == 0)
        assert any(name.startswith("Judge") for name, _ in one.facts)


def test_a_run_without_pairs_has_no_such_section(reported: Callable[[str], Path]) -> None:
    assert 'id="pairs"' not in (reported("plain") / "report.html").read_text()


def test_pairs_that_no_longer_hold_are_named_and_the_rest_is_reported(
    reported: Callable[[str], Path], command: Command, tmp_path: Path
) -> None:
    run = made(tmp_path / "run")
    (run / "pairs").mkdir()
    shutil.copy(reported("pairs") / "pairs" / "pairs.jsonl", run / "pairs")
    ended = command("report", run)
    assert ended.code == 0
    assert "edgen: the report shows no pairs: " in ended.err  # the command says so, not only its page
    text = (run / "report.html").read_text()
    assert "The pairs of this run cannot be read: " in text
    assert 'id="shape"' in text
