"""Exports on the credit of one turn: the evidence of labels, and figures on planted truth."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from edgen.core.pair import ProbabilitySignal, RolloutSignal, Signals
from edgen.export.evidence import ALL, CUT, FILE, CreditFigures, list_credit_notes, read_figures
from edgen.export.rows import Row
from edgen.export.write import export
from edgen.store.run_parts import ComparedPair
from tests import ROOT
from tests.cli.command import Command
from tests.export.runs import FORMATS, MemoryRun, chat, compared
from tests.export.test_rows import BAD, GOOD

OWN = ProbabilitySignal(a=0.1, b=0.7, p=0.2, tie=False, abstain=False)


def rested(by: str) -> ComparedPair:
    """Return a pair whose label rests on four rollouts of each response."""
    said = RolloutSignal(
        by=by, k=4, counted=4, a=0.65, b=0.35, p=0.65, se=0.05, tie=False, abstain=False,
        judge="0123456789abcdef" if by == "oracle" else None, model="judge-1" if by == "oracle" else None,
    )  # type: ignore[arg-type]  # fmt: skip
    pair = compared(0, GOOD, BAD, chosen="a", p=0.65, by=by, signals=Signals(probability=OWN))
    assert pair.pair.label is not None
    label = msgspec.structs.replace(pair.pair.label, k=4, se=0.05)
    signals = msgspec.structs.replace(pair.pair.signals, rollouts=(said,))
    return msgspec.structs.replace(
        pair, pair=msgspec.structs.replace(pair.pair, label=label, signals=signals)
    )


def card(folder: Path, name: str, pair: ComparedPair) -> str:
    export(MemoryRun(pairs=[pair]), FORMATS[name], folder)  # type: ignore[arg-type]
    return (folder / "README.md").read_text()


@pytest.mark.parametrize("by", ["oracle", "probability"])
def test_a_card_says_that_labels_rest_on_rollouts_and_how_many(by: str, tmp_path: Path) -> None:
    text = card(tmp_path / "turn", "trl-dpo", rested(by))
    assert (
        "the conversation was continued 4 times, and the mean over the continuations counts. A row holds"
        in text
    )
    assert "rollouts=4`: 1" in text
    assert "were given to whole" not in text
    text = card(tmp_path / "whole", "trl-conversation", rested(by))
    assert "nothing about the later turns, which the row holds too" in text


@pytest.mark.parametrize("by", ["oracle", "probability"])
def test_refuel_takes_the_mean_strengths_for_rewards(by: str) -> None:
    run = MemoryRun(pairs=[rested(by)])
    (row,) = [item for item in FORMATS["refuel"].rows(run, chat()) if isinstance(item, Row)]  # type: ignore[arg-type]
    assert (row.value["chosen_reward"], row.value["reject_reward"]) == (0.65, 0.35)


class TestFigures:
    """The numbers are stored once, in credit_figures.json."""

    def test_the_card_of_an_export_by_turn_says_what_the_file_says(self, tmp_path: Path) -> None:
        text = card(tmp_path / "turn", "trl-dpo", compared(0, GOOD, BAD))
        known = msgspec.json.decode(FILE.read_bytes(), type=CreditFigures)
        assert len(known.figures) >= 6
        for figure in known.figures:
            every, cut = (figure.find_case(where) for where in (ALL, CUT))
            said = (
                f"- {figure.name}: {every.right:.0%} ({every.low:.0%} to {every.high:.0%}); "
                f"{cut.right:.0%} ({cut.low:.0%} to {cut.high:.0%}) with --min-turns-left 1; "
                f"{figure.calls:.1f} calls a label"
            )
            assert said in text
        assert (
            f"{known.scenarios} simulated scenarios in which each turn's worth is known ({known.date})"
            in text
        )

    def test_the_table_of_the_benchmarks_is_the_files(self) -> None:
        from bench.credit import tabulate

        page = (ROOT / "bench" / "credit.md").read_text()
        assert "\n".join(tabulate(read_figures())) in page

    def test_others_have_no_such_note(self, tmp_path: Path) -> None:
        assert "planted truth" not in card(tmp_path / "whole", "trl-conversation", compared(0, GOOD, BAD))
        assert "planted truth" not in card(tmp_path / "human", "trl-dpo", compared(0, GOOD, BAD, by="human"))
        assert list(list_credit_notes("turn", [])) == []

    def test_the_shares_are_shares_of_labels(self) -> None:
        for figure in read_figures().figures:
            for case in figure.cases:
                assert 0 <= case.low <= case.right <= case.high <= 1
                assert case.alike <= case.n * (1 - case.right) + 0.5, "those that are alike are not right"
            parts = [case.n for case in figure.cases if re.match(r"\d", case.where)]
            assert sum(parts) == figure.find_case(ALL).n
            assert figure.find_case(CUT).n == figure.find_case(ALL).n - parts[0]


@pytest.mark.integration
def test_the_figures_are_measured_by_the_commands_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands reproduce the figures.

    With so few scenarios they are imprecise; still, verdicts on the response find the better turn.
    """
    from bench.credit import WAYS, measure

    def command(*arguments: str) -> str:
        ended = Command(capsys)(*arguments)
        assert ended.code == 0, ended.err
        return ended.out

    ways = [way for way in WAYS if (way.credit, way.k) in (("response", None), ("rollouts", 1))][:2]
    figures = measure(tmp_path, 12, ways, command)
    response, rollouts = figures.figures
    assert (response.calls, figures.conversations) == (2.0, 48)
    assert rollouts.calls > 4
    assert response.find_case(ALL).right > 0.6
    for figure in figures.figures:
        assert figure.find_case(ALL).n == sum(case.n for case in figure.cases if re.match(r"\d", case.where))
