"""Exports by several processes: the rows equal those of one process, in every format."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import edgen
from edgen.core.errors import EdgenError, RunError, UsageError
from edgen.core.registry import find, find_all
from edgen.export.chat import build_chat
from edgen.export.format import iterate_items
from edgen.export.options import OptionValues
from edgen.export.ranges import iterate_items_in_ranges, require_ranges
from edgen.export.rows import Item, Row
from edgen.runtime.processes import Processes
from edgen.store.ordered_lines import iterate_lines_between
from edgen.store.run_parts import cut_plan
from edgen.store.run_reader import RunReader
from tests import ROOT
from tests.cli.command import call
from tests.dose import dose

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("forked_processes")]

BY_RANGE = sorted(one.name for one in find_all("format") if one.layout.by_range)
JOBS = {  # the number of conversations, and further keys of each job
    "quickstart": (17, {"replicates": 2, "arms": {"a": {}, "b": {"prompt": "education_dialogue_json"}}}),
    "tutoring": (5, {}),
    "incident_response": (5, {}),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return a run with arms, pairs and a layer; one of exercises; one of machines."""
    above = tmp_path_factory.mktemp("runs")
    for name, (count, more) in JOBS.items():
        edgen.generate(
            ROOT / "jobs" / f"{name}.yaml", conversations=count, output=above / name, progress=False, **more
        )
    assert call("pairs", above / "quickstart", "--signal", "oracle") == 0
    assert call("annotate", above / "quickstart", "--labels", "teacher_moves") == 0
    return [above / name for name in JOBS]


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with Processes(2) as found:
        yield found


@pytest.mark.long
@pytest.mark.parametrize("name", dose(BY_RANGE[::3], BY_RANGE))
def test_ranges_give_the_rows_of_one_process(name: str, runs: list[Path], processes: Processes) -> None:
    format_, rows = find("format", name), 0
    for folder in runs:
        options = format_.read({"opening": "user"} if format_.chat else {})
        with RunReader(folder) as run:
            if format_.refuse(run) is not None or (
                "pairs" in format_.needs and not run.rundir.pairs.exists()
            ):
                continue
            chat = build_chat(run, options)
            one = [*map(as_sent, iterate_items(run, format_, chat))]
        with RunReader(folder) as run:
            several = [*iterate_items_in_ranges(run, format_, options, processes, size=7)]
        assert several == one
        rows += sum(isinstance(item, Row) for item in one)
    assert rows


def as_sent(item: Item) -> Item:
    """Return a row as it is written, with its scenario."""
    return replace(item, scenario=None) if isinstance(item, Row) else item


def test_layers_are_divided_with_what_is_left_out_of_them(runs: list[Path], processes: Processes) -> None:
    options = find("format", "hf").read({})
    with RunReader(runs[0]) as run:
        (layer,) = run.layers
        labelled = sum(bool(one.labels) for one in run.conversations())
        stale = Counter(run.stale_labels)
    assert labelled
    with RunReader(runs[0]) as run:
        rows = [*iterate_items_in_ranges(run, find("format", "hf"), options, processes, size=3)]
        assert run.stale_labels == stale
    assert (
        sum(row.value[f"labels.{layer.name}"] is not None for row in rows if isinstance(row, Row)) == labelled
    )


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with pairs; in test-long one with more scenarios than a range has."""
    folder = tmp_path_factory.mktemp("many") / "run"
    job = ROOT / "jobs" / "quickstart.yaml"
    edgen.generate(job, conversations=dose(30, 1100), replicates=2, output=folder, progress=False)
    assert call("pairs", folder, "--signal", "probability") == 0
    return folder


@pytest.mark.long
@pytest.mark.parametrize("name", dose(["csv"], ["hf", "csv", "trl-conversation"]))
def test_the_command_writes_the_same_bytes(name: str, tmp_path: Path, many: Path) -> None:
    edgen.open(many).export(name, tmp_path / "a" / "out")
    assert call("export", many, "--to", name, "-o", tmp_path / "b" / "out", "--workers", "2") == 0
    assert files_in(tmp_path / "a") == files_in(tmp_path / "b")


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_format_of_the_whole_run_says_so(
    tmp_path: Path, runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("mtpo", "trl-kto", "dstc7"):
        with pytest.raises(
            UsageError, match=f"{name} needs the whole run at once, so one process has to write it"
        ):
            require_ranges(find("format", name), OptionValues())
    assert call("export", runs[0], "--to", "mtpo", "-o", tmp_path / "out", "--workers", "2") == 2
    assert "leave --workers out" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match="--against"):
        require_ranges(find("format", "trl-dpo"), find("format", "trl-dpo").read({"against": runs[0]}))
    assert call("export", runs[0], "--to", "hf", "-o", tmp_path / "out", "--on", "ray") == 2
    assert "--workers 4" in capsys.readouterr().err


def test_lines_by_somebody_else_are_not_divided(tmp_path: Path, processes: Processes) -> None:
    edgen.generate(
        ROOT / "jobs" / "quickstart.yaml", conversations=4, output=tmp_path / "run", progress=False
    )
    with RunReader(tmp_path / "run") as run:
        run.rundir.pairs.parent.mkdir(exist_ok=True)
        run.rundir.pairs.write_bytes(b"")
        with pytest.raises(RunError, match="may be in any order"):
            next(iterate_items_in_ranges(run, find("format", "hf"), OptionValues(), processes))


def test_an_error_in_a_range_is_the_error_of_the_export(tmp_path: Path, processes: Processes) -> None:
    edgen.generate(
        ROOT / "jobs" / "quickstart.yaml", conversations=4, output=tmp_path / "run", progress=False
    )
    with RunReader(tmp_path / "run") as run, pytest.raises(EdgenError, match="--train nobody"):
        [
            *iterate_items_in_ranges(
                run, find("format", "sharegpt"), OptionValues(given={"train": "nobody"}), processes
            )
        ]


@given(
    numbers=st.lists(st.one_of(st.none(), st.integers(0, 30)), max_size=40),
    step=st.integers(1, 12),
    count=st.integers(0, 40),
)
def test_ranges_of_lines_are_all_lines(numbers: list[int | None], step: int, count: int) -> None:
    known = iter(sorted(one for one in numbers if one is not None))
    lines = [
        json.dumps([None if one is None else next(known), "x" * (at % 7)]) for at, one in enumerate(numbers)
    ]
    data = "".join(f"{line}\n" for line in lines).encode()

    def scenario_of(line: bytes) -> int | None:
        found: int | None = json.loads(line)[0]
        return found

    parts = [
        [*iterate_lines_between(io.BytesIO(data), len(data), part, scenario_of)]
        for part in cut_plan(count, step)
    ]
    assert b"".join(line for part in parts for line in part) == data
    for part, scenarios in zip(parts, cut_plan(count, step), strict=True):
        assert all(scenario_of(line) in (None, *scenarios[:100]) for line in part)
