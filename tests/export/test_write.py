"""A folder that appears completely or not at all, and refused writes."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import RunError, ShortError, StoppedError, TemplateError, UsageError
from edgen.core.files import choose_temporary_name
from edgen.core.values import Role
from edgen.export.files import import_arrow
from edgen.export.shared_options import Opening
from edgen.preferences.labels import UNLABELLED
from edgen.validation.checker import Checker
from edgen.validation.reading import find_inputs, read_records
from tests.export.folders import BAD, GOOD, RUN, head, write
from tests.export.runs import FORMATS, OF_EDUCATION, SPACE, TABLES, MemoryRun, compared, lesson, turns


def _read(path: Path) -> list[Any]:
    if path.suffix == ".parquet":
        import pyarrow.parquet

        rows: list[Any] = pyarrow.parquet.read_table(path).to_pylist()
        return rows
    if path.suffix == ".json":
        return list(json.loads(path.read_text(encoding="utf-8")))
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class TestFolder:
    @pytest.mark.parametrize("name", TABLES)
    def test_the_card_names_every_file_and_nothing_else_is_there(self, name: str, tmp_path: Path) -> None:
        target = tmp_path / "not" / "there" / "yet"
        exported = write(name, RUN, target)
        named = {}
        for i, config in enumerate(head(target)["configs"]):
            assert config.get("default", False) == (i == 0)
            for part in config["data_files"]:
                files = sorted(target.glob(part["path"]))
                named.update(dict.fromkeys(files))
                rows = [row for file in files for row in _read(file)]
                assert len(rows) == exported.rows[config["config_name"]][part["split"]] > 0
                columns = next(
                    t for t in FORMATS[name].tables_of(SPACE) if t.name == config["config_name"]
                ).columns
                assert all(list(row) == list(columns) for row in rows)
        there = {path for path in target.rglob("*") if path.is_file()}
        beside = {target / "README.md"}
        if FORMATS[name].card.hub:
            beside.add(target / "croissant.json")
        if name == "llamafactory":
            beside.add(target / "dataset_info.json")
            assert "`dataset_info.json` names" in (target / "README.md").read_text()
        assert there == {*named, *beside}
        assert [path.name for path in target.parent.iterdir()] == ["yet"]

    @pytest.mark.parametrize("name", TABLES)
    def test_an_empty_split_has_no_file_and_is_not_named(self, name: str, tmp_path: Path) -> None:
        run = MemoryRun(taught=[lesson(0, 0, GOOD)], pairs=[compared(0, GOOD, BAD)])
        write(name, run, tmp_path / "out")
        for config in head(tmp_path / "out")["configs"]:
            assert [part["split"] for part in config["data_files"]] == ["train"]
        assert not [p for p in (tmp_path / "out").rglob("*") if "test" in p.name or "eval" in p.name]

    def test_an_empty_folder_is_taken(self, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        write("trl-sft", RUN, tmp_path / "out")
        assert (tmp_path / "out" / "train.jsonl").exists()

    def test_a_link_to_an_empty_folder_is_taken(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        write("trl-sft", RUN, tmp_path / "link")
        assert (tmp_path / "real" / "train.jsonl").exists()
        assert (tmp_path / "link").is_symlink()

    def test_the_same_run_gives_the_same_bytes(self, tmp_path: Path, exported: Callable[[str], Path]) -> None:
        for name in OF_EDUCATION:
            write(name, RUN, tmp_path / name)
            one, two = (
                {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
                for folder in (exported(name), tmp_path / name)
            )
            assert one == two

    def test_parquet_has_the_columns_of_the_trainer(self, tmp_path: Path) -> None:
        many = MemoryRun(taught=[lesson(i, 0, GOOD) for i in range(2500)])  # three row groups
        write("verl", many, tmp_path / "out", opening="user")
        rows = _read(tmp_path / "out" / "train.parquet")
        assert [row["id"] for row in rows] == [f"tiny-{i:06d}-r0" for i in range(2500)]
        assert rows[-1]["messages"][1] == {
            "role": "assistant",
            "content": "What is half of 4?",
            "train": True,
        }

    def test_ed_is_what_validate_takes(self, tmp_path: Path) -> None:
        write("ed", RUN, tmp_path / "out")
        inputs = find_inputs(tmp_path / "out")
        assert [path.name for path in inputs.files] == [
            "conversations_eval.json",
            "conversations_train1.json",
            "conversations_train2.json",
        ]
        checker = Checker()
        for path in inputs.files:
            report = checker.check_file(str(path), read_records(path))
            assert report.records == report.valid == 2
            assert report.problems == ()


class TestRefused:
    @pytest.mark.parametrize("name", OF_EDUCATION)
    def test_a_folder_that_holds_something(self, name: str, tmp_path: Path) -> None:
        (tmp_path / "kept.txt").write_text("mine")
        with pytest.raises(UsageError, match="not empty and is not overwritten"):
            write(name, RUN, tmp_path)
        assert [p.name for p in tmp_path.iterdir()] == ["kept.txt"]

    def test_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("mine")
        with pytest.raises(UsageError, match="not a folder"):
            write("trl-sft", RUN, tmp_path / "file")
        with pytest.raises(UsageError, match="file/below"):
            write("trl-sft", RUN, tmp_path / "file" / "below")
        assert (tmp_path / "file").read_text() == "mine"

    def test_a_link_in_a_circle(self, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to(tmp_path / "b")
        (tmp_path / "b").symlink_to(tmp_path / "a")
        with pytest.raises(UsageError, match=r"a: it cannot be"):
            write("trl-sft", RUN, tmp_path / "a")

    @pytest.mark.parametrize("name", OF_EDUCATION)
    def test_a_run_without_anything(self, name: str, tmp_path: Path) -> None:
        with pytest.raises(ShortError, match=f"nothing to export as {name}"):
            write(name, MemoryRun(), tmp_path / "deep" / "out")
        assert list(tmp_path.iterdir()) == []

    def test_a_run_whose_pairs_were_never_made(self, tmp_path: Path) -> None:
        with pytest.raises(RunError, match="no pairs"):
            write("trl-dpo", MemoryRun(pairs=None), tmp_path / "deep" / "out")
        assert list(tmp_path.iterdir()) == []

    def test_every_pair_left_out_is_told_with_the_counts(self, tmp_path: Path) -> None:
        pairs = [
            compared(0, GOOD, BAD, chosen=None, left_out="tie"),
            compared(1, GOOD, BAD, chosen=None, left_out="tie"),
            compared(2, GOOD, GOOD),
        ]
        with pytest.raises(ShortError) as caught:
            write("trl-dpo", MemoryRun(pairs=pairs), tmp_path / "out")
        assert "identical 1" in str(caught.value)
        assert f"tie 2 ({UNLABELLED['tie']})" in str(caught.value)
        assert "`edgen pairs runs/tiny --signal oracle|probability|human|flag|judged` left out" in str(
            caught.value
        )
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(("train", "other"), [("Teacher", "student"), ("Student", "teacher")])
    def test_pairs_that_part_at_the_other_side_are_told_how_to_train_it(
        self, train: Role, other: str, tmp_path: Path
    ) -> None:
        said = {"Teacher": ("T Hi.", "S Yes."), "Student": ("T Hi.", "S Yes.")}[train]
        other_said = ("T Hi.", "S No.") if train == "Teacher" else ("T Ho.", "S Yes.")
        run = MemoryRun(pairs=[compared(0, turns(*said), turns(*other_said))])
        with pytest.raises(ShortError, match=f"`--train {other}` trains that side") as caught:
            write("trl-dpo", run, tmp_path / "out", train=train.lower())
        assert "edgen pairs" not in str(caught.value)
        right: Role = "Student" if train == "Teacher" else "Teacher"
        made = write("trl-dpo", run, tmp_path / "out", train=right.lower(), opening="user")
        assert made.left_out == {}

    def test_pairs_of_which_one_goes_on_are_told_where_they_fit(self, tmp_path: Path) -> None:
        run = MemoryRun(pairs=[compared(0, turns("T Hi.", "S Yes."), turns("T Hi.", "S Yes.", "T More."))])
        with pytest.raises(ShortError, match="`--to trl-conversation` and `--to mtpo`"):
            write("trl-dpo", run, tmp_path / "out")
        assert write("trl-conversation", run, tmp_path / "out").left_out == {}

    @pytest.mark.parametrize(("name", "opening"), [("refuel", "both"), ("sharegpt", "system")])
    def test_an_opening_that_does_not_fit_names_the_one_that_does(
        self, name: str, opening: Opening, tmp_path: Path
    ) -> None:
        with pytest.raises(ShortError, match="`--opening user`"):
            write(name, RUN, tmp_path / "out", opening=opening)
        write(name, RUN, tmp_path / "out")

    @pytest.mark.parametrize(
        ("name", "options", "said"),
        [
            ("trl-sft", {"opening": "loud"}, "--opening loud: expected one of user, system, both."),
            ("hf", {"files": "arrow"}, "--files arrow: expected one of parquet, jsonl."),
            ("csv", {"csv_safe": "yes"}, "--csv-safe yes: expected true or false."),
            ("trl-sft", {"train": 3}, "--train 3: expected a text."),
        ],
    )
    def test_a_choice_that_there_is_not(
        self, name: str, options: dict[str, Any], said: str, tmp_path: Path
    ) -> None:
        with pytest.raises(UsageError) as caught:
            write(name, RUN, tmp_path / "out", **options)
        assert str(caught.value) == said

    @pytest.mark.parametrize("below", [".", "exports", "pairs/new/deeper"])
    def test_a_folder_inside_a_run(self, below: str, tmp_path: Path) -> None:
        run = tmp_path / "run"
        run.mkdir()
        (run / "job.yaml").touch()
        (run / "run.db").touch()
        (tmp_path / "link").symlink_to(run)
        for name in ("run", "link"):
            with pytest.raises(UsageError, match="a run's folder is the run's; name a folder elsewhere"):
                write("trl-sft", RUN, tmp_path / name / below)
        assert sorted(path.name for path in run.iterdir()) == ["job.yaml", "run.db"]
        write("trl-sft", RUN, tmp_path / "run-exports")

    def test_a_job_beside_it_makes_no_run_of_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "job.yaml").touch()
        write("trl-sft", RUN, tmp_path / "out")

    @pytest.mark.parametrize("name", ["trl-dpo", "openrlhf", "mtpo"])
    def test_a_reading_that_breaks_leaves_nothing(self, name: str, tmp_path: Path) -> None:
        run = MemoryRun(pairs=RUN.pairs, breaks_after=2)
        with pytest.raises(RunError, match="cannot be read"):
            write(name, run, tmp_path / "deep" / "out")
        assert list(tmp_path.iterdir()) == []

    def test_an_opening_without_the_block_that_is_asked_for(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.j2"
        path.write_text("Hello {{ role }}")
        with pytest.raises(TemplateError, match="system"):
            write("trl-sft", RUN, tmp_path / "out", opening="system", opening_prompt=path)
        assert not (tmp_path / "out").exists()
        write("trl-sft", RUN, tmp_path / "out", train="student", opening_prompt=path)

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
    def test_a_full_disk_leaves_nothing(self, tmp_path: Path) -> None:
        class Full(MemoryRun):
            """A run whose reading finds the disk full."""

            def conversations(self) -> Any:
                yield from super().conversations()
                with Path("/dev/full").open("wb", buffering=0) as full:
                    full.write(b"x")

        with pytest.raises(StoppedError, match="the disk is full"):
            write("trl-sft", Full(taught=RUN.taught), tmp_path / "out")
        assert list(tmp_path.iterdir()) == []

    def test_parquet_without_pyarrow_is_a_sentence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pyarrow", None)  # so that it cannot be imported
        with pytest.raises(UsageError, match=r"\[parquet\]'|--extra parquet"):
            import_arrow()

    @pytest.mark.integration
    def test_only_verl_needs_pyarrow(self) -> None:
        code = "import sys, edgen.export.write; print('pyarrow' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "False\n"


def test_a_leftover_of_a_killed_export_is_removed(tmp_path: Path) -> None:
    stale = choose_temporary_name(tmp_path / "out")
    stale.mkdir()
    (stale / "train.jsonl").write_text("half")
    write("trl-sft", RUN, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"out"}
