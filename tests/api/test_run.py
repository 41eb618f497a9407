"""A run in Python: its status, conversations, tables, pairs, exports, statistics, pages."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

import edgen
from edgen.core import registry
from edgen.core.errors import InputError, ShortError, UsageError
from edgen.core.values import Scenario, Turn
from tests.api.test_generate import JOB


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    """Return a run of two conversations for each of six scenarios."""
    return edgen.generate(JOB, replicates=2, output=tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def arms(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    both = {"plain": {}, "other": {"backends": {"default": {"type": "simulator", "seed": 5}}}}
    return edgen.generate(JOB, arms=both, output=tmp_path_factory.mktemp("arms") / "run")


def test_conversations_are_frozen_values(run: edgen.Run) -> None:
    found = list(run.conversations())
    assert len(found) == 12
    first = found[0]
    assert first.id == "lessons-000000-r0"
    assert first.scenario["topic"] == first.as_row()["topic"]
    assert first.provenance["simulated"] is True
    assert {turn.role for turn in first.turns} == {"Teacher", "Student"}
    assert str(first).startswith(f"{first.turns[0].role}: ")
    with pytest.raises(AttributeError):
        first.id = "another"  # type: ignore[misc]
    sides = {side: len(list(run.conversations(side))) for side in ("train", "test")}  # type: ignore[arg-type]
    assert sides["train"] + sides["test"] == 12
    assert sides["test"] == 2


def test_conversations_are_streamed(run: edgen.Run) -> None:
    stream = run.conversations()
    assert next(stream).id == "lessons-000000-r0"
    assert run.status.state == "complete"  # no lock is held meanwhile
    stream.close()


def test_the_status_of_arms(arms: edgen.Run) -> None:
    status = arms.status
    assert (status.accepted, [*status.begun_arms()]) == (12, ["plain", "other"])
    assert {one.arm for one in arms} == {"plain", "other"}
    assert "plain" in arms._repr_html_()


def test_pairs_and_their_export(run: edgen.Run, tmp_path: Path) -> None:
    pairs = run.pairs(by="oracle")
    assert pairs.made is not None
    assert pairs.made.judged is not None
    assert len(list(pairs)) == 6
    assert [pair.id for pair in run.pairs()] == [pair.id for pair in pairs]
    assert "<table>" in pairs._repr_html_()
    exported = run.export("trl-conversation", tmp_path / "trl")
    assert (tmp_path / "trl" / "README.md").exists()
    assert exported.format == "trl-conversation"


def test_a_function_judges(run: edgen.Run) -> None:
    asked: list[edgen.Request] = []

    async def judge(request: edgen.Request) -> str:
        asked.append(request)
        return "ANSWER: 1"

    with pytest.raises(
        ShortError, match="No pair could be labelled"
    ):  # the first of both orders is no verdict
        run.pairs(by="oracle", backends={"judge": judge})
    assert len(asked) == 12
    assert len(list(run.pairs())) == 6


def test_a_function_judges_and_says_how_sure_it_is(run: edgen.Run) -> None:
    async def judge(request: edgen.Request) -> edgen.Reply:
        assert request.logprobs == 2
        return edgen.Reply("1", tokens=(edgen.Token("1", -0.2, (("1", -0.2), ("2", -1.2))),))

    with pytest.raises(ShortError, match="No pair could be labelled"):
        run.pairs(by="oracle", backends={"judge": judge}, pairs={"logprobs": 2})
    (signal,) = [one for one in next(iter(run.pairs())).signals.oracle if one.logprobs is not msgspec.UNSET]
    assert [verdict.logprob_p for verdict in signal.verdicts] == pytest.approx([0.731059, 0.268941], abs=1e-6)
    assert signal.logprobs.p == pytest.approx(
        0.5
    )  # it favours the first text, and asking in both orders removes that


async def test_pairs_inside_a_running_loop(run: edgen.Run) -> None:
    assert len(list(run.pairs(by="oracle"))) == 6


@pytest.mark.integration  # the first picture on a machine searches for fonts
def test_statistics_and_a_page(run: edgen.Run, tmp_path: Path) -> None:
    stats = run.stats("overview")
    assert stats["overview"].records == 12
    assert "<pre>" in stats._repr_html_()
    assert [*stats.as_json()["overview"]]
    with pytest.raises(UsageError, match="was not measured"):
        stats["lengths"]
    page = run.report(tmp_path / "page.html")
    assert page.read_text().startswith("<!")


def test_statistics_of_arms(arms: edgen.Run) -> None:
    stats = arms.stats(["overview"])
    assert [*stats.arms] == ["plain", "other"]
    with pytest.raises(UsageError, match="this run has arms"):
        stats["overview"]


def test_a_comparison(arms: edgen.Run, run: edgen.Run) -> None:
    found = edgen.compare(arms)
    assert [arm.label for arm in found.result.arms] == ["plain", "other"]
    assert "accepted" in str(found)
    assert found.metrics
    assert found.file.exists()
    assert "<table>" in found._repr_html_()
    assert edgen.compare(arms.folder, arms=["other", "plain"]).result.baseline == "other"
    with pytest.raises(UsageError, match="one arm or none"):
        edgen.compare(run)
    with pytest.raises(UsageError, match="name a run"):
        edgen.compare()


def test_html_shows_what_a_model_wrote_and_does_nothing() -> None:
    attack = "<script>alert('x')</script><img src=x onerror=alert(1)>"
    one = edgen.Conversation(
        id=attack,
        scenario=Scenario(0, {"topic": attack}),
        turns=(Turn("Teacher", attack), Turn(attack, "yes")),
        probability=0.5,
        ended_by=None,
        split="train",
        arm=attack,
        replicate=0,
        provenance={},
    )
    page = one._repr_html_()
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("&lt;script&gt;") == 4


@pytest.mark.parametrize("library", ["pandas", "polars", "datasets"])
def test_tables_have_a_column_for_every_dimension(run: edgen.Run, library: str) -> None:
    pytest.importorskip(library)
    method = {"pandas": "to_pandas", "polars": "to_polars", "datasets": "to_dataset"}[library]
    table = getattr(run, method)()
    columns = list(table.column_names if library == "datasets" else table.columns)
    assert {"id", "scenario", "split", "topic", "student_preference", "turns", "probability"} <= set(columns)
    assert len(table) == 12
    assert table["id"][0] == "lessons-000000-r0"


@pytest.mark.parametrize("library", ["pandas", "polars", "datasets"])
def test_a_library_that_is_not_installed_is_named(
    run: edgen.Run, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = {"pandas": "to_pandas", "polars": "to_polars", "datasets": "to_dataset"}[library]
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UsageError, match=f"needs {library}, which is not installed; install it with"):
        getattr(run, method)()


def test_bad_arguments(run: edgen.Run, tmp_path: Path) -> None:
    for call, said in (
        (lambda: edgen.open(5), "the run is an int"),  # type: ignore[arg-type]
        (lambda: run.export("trl-dpoo", tmp_path / "x"), "did you mean"),
        (lambda: run.export("csv", tmp_path / "x", traim="teacher"), "csv has no option --traim"),
        (lambda: run.pairs(by="me"), "is not a source of labels"),  # type: ignore[arg-type]
        (lambda: run.stats(["overvew"]), "no such measure"),
    ):
        with pytest.raises(InputError, match=said):
            call()


def test_what_edgen_exports(tmp_path: Path) -> None:
    for name in edgen.__all__:
        assert getattr(edgen, name) is not None
    assert {*edgen.__all__, "open", *registry.list_names("function")} == set(dir(edgen))
    for name in registry.list_names("function"):
        assert getattr(edgen, name).__name__ == name
    assert edgen.errors.ShortError is ShortError
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        edgen.nothing  # type: ignore[attr-defined] # noqa: B018
