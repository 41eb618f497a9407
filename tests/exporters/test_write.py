"""A folder that appears whole or not at all, its card, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from edgen.errors import RunError, ShortError, StoppedError, TemplateError, UsageError
from edgen.exporters import EXPORTERS, OPENING_VARIABLES, REASONS, Exported, Opening, Voice, export
from edgen.model import Role, Turn
from edgen.pairing.labels import LEFT_OUT
from edgen.pairing.model import Compare
from edgen.prompting import load_prompt
from edgen.validation import Checker, find_inputs, read_records
from tests.exporters.runs import MemoryRun, compared, lesson, turns, voice

GOOD = turns("T What is half of 4?", "S No idea.", "T Draw four dots.", "S Two!")
BAD = turns("T What is half of 4?", "S No idea.", "T Think.")
RUN = MemoryRun(
    taught=[
        lesson(index, number, said, "test" if index == 2 else "train")
        for index in range(3)
        for number, said in enumerate((GOOD, BAD))
    ],
    pairs=[compared(0, GOOD, BAD), compared(1, GOOD, GOOD), compared(2, GOOD, BAD, split="test")],
)


def _export(name: str, run: MemoryRun, target: Path, **how: Any) -> Exported:
    return export(run, EXPORTERS[name], how.pop("voice", voice()), target, how.pop("license_", None))


def _head(folder: Path) -> dict[str, Any]:
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert text.startswith("---\n")
    head = yaml.safe_load(text.split("---\n")[1])
    assert isinstance(head, dict)
    return head


def _read(path: Path) -> list[Any]:
    if path.suffix == ".parquet":
        import pyarrow.parquet

        rows: list[Any] = pyarrow.parquet.read_table(path).to_pylist()
        return rows
    if path.suffix == ".json":
        return list(json.loads(path.read_text(encoding="utf-8")))
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class TestFolder:
    @pytest.mark.parametrize("name", EXPORTERS)
    def test_the_card_names_every_file_and_nothing_else_is_there(self, name: str, tmp_path: Path) -> None:
        target = tmp_path / "not" / "there" / "yet"
        exported = _export(name, RUN, target)
        named = {}
        for i, config in enumerate(_head(target)["configs"]):
            assert config.get("default", False) == (i == 0)
            for part in config["data_files"]:
                files = sorted(target.glob(part["path"]))
                named.update(dict.fromkeys(files))
                rows = [row for file in files for row in _read(file)]
                assert len(rows) == exported.rows[config["config_name"]][part["split"]] > 0
                columns = next(c for c in EXPORTERS[name].configs if c.name == config["config_name"]).columns
                assert all(list(row) == list(columns) for row in rows)
        there = {path for path in target.rglob("*") if path.is_file()}
        assert there == {*named, target / "README.md"}
        assert [path.name for path in target.parent.iterdir()] == ["yet"]

    @pytest.mark.parametrize("name", EXPORTERS)
    def test_an_empty_split_has_no_file_and_is_not_named(self, name: str, tmp_path: Path) -> None:
        run = MemoryRun(taught=[lesson(0, 0, GOOD)], pairs=[compared(0, GOOD, BAD)])
        _export(name, run, tmp_path / "out")
        for config in _head(tmp_path / "out")["configs"]:
            assert [part["split"] for part in config["data_files"]] == ["train"]
        assert not [p for p in (tmp_path / "out").rglob("*") if "test" in p.name or "eval" in p.name]

    def test_an_empty_folder_is_taken(self, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        _export("trl-sft", RUN, tmp_path / "out")
        assert (tmp_path / "out" / "train.jsonl").exists()

    def test_a_link_to_an_empty_folder_is_taken(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        _export("trl-sft", RUN, tmp_path / "link")
        assert (tmp_path / "real" / "train.jsonl").exists()
        assert (tmp_path / "link").is_symlink()

    def test_the_same_run_gives_the_same_bytes(self, tmp_path: Path) -> None:
        for name in EXPORTERS:
            _export(name, RUN, tmp_path / "one" / name)
            _export(name, RUN, tmp_path / "two" / name)
        one, two = (
            {
                p.relative_to(tmp_path / side): p.read_bytes()
                for p in (tmp_path / side).rglob("*")
                if p.is_file()
            }
            for side in ("one", "two")
        )
        assert one == two

    def test_parquet_has_the_columns_of_the_trainer(self, tmp_path: Path) -> None:
        many = MemoryRun(taught=[lesson(i, 0, GOOD) for i in range(2500)])  # three row groups
        _export("verl", many, tmp_path / "out")
        rows = _read(tmp_path / "out" / "train.parquet")
        assert [row["id"] for row in rows] == [f"tiny-{i:06d}-r0" for i in range(2500)]
        assert rows[-1]["messages"][1] == {
            "role": "assistant",
            "content": "What is half of 4?",
            "train": True,
        }

    def test_ed_is_what_validate_takes(self, tmp_path: Path) -> None:
        _export("ed", RUN, tmp_path / "out")
        inputs = find_inputs(tmp_path / "out")
        assert [path.name for path in inputs.files] == [
            "conversations_eval.json",
            "conversations_train1.json",
            "conversations_train2.json",
        ]
        checker = Checker()
        for path in inputs.files:
            report = checker.file(str(path), read_records(path))
            assert report.records == report.valid == 2
            assert report.findings == ()


class TestRefused:
    @pytest.mark.parametrize("name", EXPORTERS)
    def test_a_folder_that_holds_something(self, name: str, tmp_path: Path) -> None:
        (tmp_path / "kept.txt").write_text("mine")
        with pytest.raises(UsageError, match="not empty, and nothing is overwritten"):
            _export(name, RUN, tmp_path)
        assert [p.name for p in tmp_path.iterdir()] == ["kept.txt"]

    def test_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("mine")
        with pytest.raises(UsageError, match="no folder"):
            _export("trl-sft", RUN, tmp_path / "file")
        with pytest.raises(UsageError, match="file/below"):
            _export("trl-sft", RUN, tmp_path / "file" / "below")
        assert (tmp_path / "file").read_text() == "mine"

    def test_a_link_in_a_circle(self, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to(tmp_path / "b")
        (tmp_path / "b").symlink_to(tmp_path / "a")
        with pytest.raises(UsageError, match=r"a: it cannot be"):
            _export("trl-sft", RUN, tmp_path / "a")

    @pytest.mark.parametrize("name", EXPORTERS)
    def test_a_run_without_anything(self, name: str, tmp_path: Path) -> None:
        with pytest.raises(ShortError, match=f"nothing to export as {name}"):
            _export(name, MemoryRun(), tmp_path / "deep" / "out")
        assert list(tmp_path.iterdir()) == []

    def test_a_run_whose_pairs_were_never_made(self, tmp_path: Path) -> None:
        with pytest.raises(RunError, match="no pairs"):
            _export("trl-dpo", MemoryRun(pairs=None), tmp_path / "deep" / "out")
        assert list(tmp_path.iterdir()) == []

    def test_every_pair_left_out_is_told_with_the_counts(self, tmp_path: Path) -> None:
        pairs = [
            compared(0, GOOD, BAD, chosen=None, left_out="tie"),
            compared(1, GOOD, BAD, chosen=None, left_out="tie"),
            compared(2, GOOD, GOOD),
        ]
        with pytest.raises(ShortError) as caught:
            _export("trl-dpo", MemoryRun(pairs=pairs), tmp_path / "out")
        assert "identical 1" in str(caught.value)
        assert f"tie 2 ({LEFT_OUT['tie']})" in str(caught.value)
        assert "`edgen pairs runs/tiny --by oracle|probability|human` left out" in str(caught.value)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(("train", "other"), [("Teacher", "student"), ("Student", "teacher")])
    def test_pairs_that_part_at_the_other_side_are_told_how_to_train_it(
        self, train: Role, other: str, tmp_path: Path
    ) -> None:
        said = {"Teacher": ("T Hi.", "S Yes."), "Student": ("T Hi.", "S Yes.")}[train]
        other_said = ("T Hi.", "S No.") if train == "Teacher" else ("T Ho.", "S Yes.")
        run = MemoryRun(pairs=[compared(0, turns(*said), turns(*other_said))])
        with pytest.raises(ShortError, match=f"`--train {other}` trains that side") as caught:
            _export("trl-dpo", run, tmp_path / "out", voice=voice(train))
        assert "edgen pairs" not in str(caught.value)
        right: Role = "Student" if train == "Teacher" else "Teacher"
        assert _export("trl-dpo", run, tmp_path / "out", voice=voice(right)).left_out == {}

    def test_pairs_of_which_one_goes_on_are_told_where_they_fit(self, tmp_path: Path) -> None:
        run = MemoryRun(pairs=[compared(0, turns("T Hi.", "S Yes."), turns("T Hi.", "S Yes.", "T More."))])
        with pytest.raises(ShortError, match="`--to trl-conversation` and `--to mtpo`"):
            _export("trl-dpo", run, tmp_path / "out")
        assert _export("trl-conversation", run, tmp_path / "out").left_out == {}

    @pytest.mark.parametrize(("name", "opening"), [("refuel", "both"), ("sharegpt", "system")])
    def test_an_opening_that_does_not_fit_names_the_one_that_does(
        self, name: str, opening: Opening, tmp_path: Path
    ) -> None:
        with pytest.raises(ShortError, match="`--opening user`"):
            _export(name, RUN, tmp_path / "out", voice=voice(opening=opening))
        _export(name, RUN, tmp_path / "out")

    @pytest.mark.parametrize("below", [".", "exports", "pairs/new/deeper"])
    def test_a_folder_inside_a_run(self, below: str, tmp_path: Path) -> None:
        run = tmp_path / "run"
        run.mkdir()
        (run / "job.yaml").touch()
        (run / "run.db").touch()
        (tmp_path / "link").symlink_to(run)
        for name in ("run", "link"):
            with pytest.raises(UsageError, match="a run's folder is the run's; name a folder elsewhere"):
                _export("trl-sft", RUN, tmp_path / name / below)
        assert sorted(path.name for path in run.iterdir()) == ["job.yaml", "run.db"]
        _export("trl-sft", RUN, tmp_path / "run-exports")

    def test_a_job_beside_it_makes_no_run_of_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "job.yaml").touch()
        _export("trl-sft", RUN, tmp_path / "out")

    @pytest.mark.parametrize("name", ["trl-dpo", "openrlhf", "mtpo"])
    def test_a_reading_that_breaks_leaves_nothing(self, name: str, tmp_path: Path) -> None:
        run = MemoryRun(pairs=RUN.pairs, breaks_after=2)
        with pytest.raises(RunError, match="cannot be read"):
            _export(name, run, tmp_path / "deep" / "out")
        assert list(tmp_path.iterdir()) == []

    def test_an_opening_without_the_block_that_is_asked_for(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.j2"
        path.write_text("Hello {{ role }}")
        plain = load_prompt(path, OPENING_VARIABLES)
        with pytest.raises(TemplateError, match="system"):
            _export("trl-sft", RUN, tmp_path / "out", voice=Voice("Teacher", "system", plain))
        assert not (tmp_path / "out").exists()
        _export("trl-sft", RUN, tmp_path / "out", voice=Voice("Student", "user", plain))

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
    def test_a_full_disk_leaves_nothing(self, tmp_path: Path) -> None:
        class Full(MemoryRun):
            """Its reading finds the disk full."""

            def lessons(self) -> Any:
                yield from super().lessons()
                with Path("/dev/full").open("wb", buffering=0) as full:
                    full.write(b"x")

        with pytest.raises(StoppedError, match="no room left"):
            _export("trl-sft", Full(taught=RUN.taught), tmp_path / "out")
        assert list(tmp_path.iterdir()) == []

    def test_parquet_without_pyarrow_is_a_sentence(self) -> None:
        code = (
            "import sys; sys.modules['pyarrow'] = None\n"
            "from edgen.errors import UsageError\n"
            "from edgen.exporters.files import arrow\n"
            "try: arrow()\n"
            "except UsageError as error: print(error)\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert "pip install 'edgen[parquet]'" in done.stdout

    def test_only_verl_needs_pyarrow(self) -> None:
        code = "import sys, edgen.exporters; print('pyarrow' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "False\n"


class TestCard:
    def _text(self, tmp_path: Path, name: str = "trl-dpo", run: MemoryRun = RUN, **how: Any) -> str:
        _export(name, run, tmp_path / "out", **how)
        return (tmp_path / "out" / "README.md").read_text(encoding="utf-8")

    def test_counts_and_reasons(self, tmp_path: Path) -> None:
        text = self._text(tmp_path)
        assert "| default | 1 | 1 |" in text
        assert "| identical | 1 | both sides say the same |" in text

    @pytest.mark.parametrize(
        ("by", "parts", "banner"),
        [
            ("oracle", (), None),
            ("oracle", ("labels",), "A simulated judge gave the labels of these conversations"),
            (
                "oracle",
                ("conversations", "labels"),
                "A simulator wrote these conversations and had a part in their labels.",
            ),
            (
                "probability",
                ("conversations",),
                "A simulator wrote these conversations and had a part in their labels.",
            ),
            ("probability", ("labels",), None),  # a simulated judge spoke too, but gave no label
            ("human", ("labels",), None),
            ("human", ("conversations",), "A simulator wrote these conversations."),
        ],
    )
    @pytest.mark.parametrize("name", ["trl-dpo", "trl-kto", "openrlhf", "refuel", "trl-conversation", "mtpo"])
    def test_says_what_a_simulator_made(
        self, name: str, by: str, parts: tuple[str, ...], banner: str | None, tmp_path: Path
    ) -> None:
        run = MemoryRun(pairs=[compared(0, GOOD, BAD, by=by, simulated=parts)], simulated=False)
        text = self._text(tmp_path, name, run)
        assert ("rehearsal" in text) == (banner is not None)
        assert banner is None or f"**{banner}" in text
        assert ("simulated" in _head(tmp_path / "out")["tags"]) == (banner is not None)
        assert ("- simulated: `no`" in text) == (banner is None)

    def test_says_of_exported_pairs_only_what_a_simulator_made(self, tmp_path: Path) -> None:
        pairs = [
            compared(0, GOOD, BAD, simulated=()),
            compared(1, GOOD, GOOD, simulated=("labels",)),
            compared(2, GOOD, BAD, chosen=None, left_out="margin", simulated=("labels",)),
        ]
        assert "rehearsal" not in self._text(tmp_path, run=MemoryRun(pairs=pairs, simulated=False))

    @pytest.mark.parametrize("name", ["trl-sft", "trl-prompts", "ed"])
    def test_a_simulated_judge_does_not_mark_conversations(self, name: str, tmp_path: Path) -> None:
        pairs = [compared(0, GOOD, BAD, simulated=("labels",))]
        real = MemoryRun(taught=RUN.taught, pairs=pairs, simulated=False)
        assert "rehearsal" not in self._text(tmp_path / "real", name, real)
        assert "simulated" not in _head(tmp_path / "real" / "out")["tags"]
        text = self._text(tmp_path / "played", name)
        assert "**A simulator wrote these conversations. They are for rehearsal" in text
        assert "- simulated: `conversations`" in text

    @pytest.mark.parametrize("name", ["trl-dpo", "trl-kto", "openrlhf"])
    def test_says_what_was_judged_of_a_turn(self, name: str, tmp_path: Path) -> None:
        pairs = {how: compared(0, GOOD, BAD, compare=how) for how in get_args(Compare)}  # type: ignore[arg-type]
        whole = self._text(tmp_path / "whole", name, MemoryRun(pairs=[pairs["conversation"]]))
        assert "The labels were given to whole conversations; a row holds the turn" in whole
        assert "compare=conversation`" in whole
        assert "single responses" not in whole
        single = self._text(tmp_path / "single", name, MemoryRun(pairs=[pairs["response"]]))
        assert "The judge compared single responses" in single
        assert "compare=response`" in single
        assert "whole conversations;" not in single

    @pytest.mark.parametrize("name", ["trl-conversation", "mtpo", "refuel"])
    def test_says_where_whole_conversations_have_labels_of_responses(self, name: str, tmp_path: Path) -> None:
        single = compared(0, GOOD, BAD, compare="response")
        whole = compared(1, GOOD, BAD)
        text = self._text(tmp_path / "whole", name, MemoryRun(pairs=[whole]))
        assert "The labels were given to whole conversations." in text
        assert "single responses" not in text
        text = self._text(tmp_path / "single", name, MemoryRun(pairs=[single]))
        assert "**The judge compared single responses, not whole conversations.**" in text
        assert "were given to whole" not in text
        text = self._text(tmp_path / "mixed", name, MemoryRun(pairs=[single, whole, whole]))
        assert "**The judge compared single responses in 1 of 3 rows, not whole conversations.**" in text

    @pytest.mark.parametrize("by", ["human", "probability"])
    def test_other_sources_label_whole_conversations(self, by: str, tmp_path: Path) -> None:
        """A judge that compared responses may have spoken too."""
        text = self._text(tmp_path, run=MemoryRun(pairs=[compared(0, GOOD, BAD, by=by, compare="response")]))
        assert "The labels were given to whole conversations; a row holds the turn" in text
        assert f"- rows with a preference by `{by}`: 1" in text

    def test_says_of_ties_what_the_judge_compared(self, tmp_path: Path) -> None:
        run = MemoryRun(pairs=[compared(0, GOOD, BAD, chosen=None, left_out="tie", compare="response")])
        text = self._text(tmp_path, "mtpo", run)
        assert "**The judge compared single responses, not whole conversations.**" in text
        assert "A simulator wrote these conversations and had a part in their labels." in text

    def test_mtpo_says_what_is_in_it(self, tmp_path: Path) -> None:
        text = self._text(tmp_path, "mtpo")
        assert "(contradicted) is no label elsewhere; it is here with its own p" in text
        assert "Pairs below the margin or beyond the number" in text

    def test_kto_says_how_many_are_good_and_what_balances_them(self, tmp_path: Path) -> None:
        def said(word: str) -> tuple[Turn, ...]:
            return turns("T Hi.", "S Ok.", f"T {word}.", "S Bye.")

        # One that beats three: 1 true, 3 false. The test split does not count for the weight.
        more_bad = [compared(0, said("x"), said(word), numbers=(0, i)) for i, word in enumerate("abc", 1)]
        text = self._text(
            tmp_path / "bad", "trl-kto", MemoryRun(pairs=[*more_bad, compared(1, GOOD, BAD, split="test")])
        )
        assert "train has 1 true and 3 false rows, test has 1 true and 1 false rows." in text
        assert "KTOConfig(desirable_weight=3.00)" in text
        more_good = [compared(0, said(word), said("x"), numbers=(i, 9)) for i, word in enumerate("abc")]
        more_good.append(compared(1, said("a"), said("y"), numbers=(0, 1)))
        text = self._text(tmp_path / "good", "trl-kto", MemoryRun(pairs=more_good))
        assert "train has 3 true and 2 false rows" in text
        assert "KTOConfig(undesirable_weight=1.50)" in text
        text = self._text(tmp_path / "even", "trl-kto", MemoryRun(pairs=[compared(0, GOOD, BAD)]))
        assert "train has 1 true and 1 false rows" in text
        assert "can stay at 1.0" in text
        only_test = MemoryRun(pairs=[compared(0, GOOD, BAD, split="test")])
        assert "No weight balances" in self._text(tmp_path / "none", "trl-kto", only_test)

    def test_a_pairs_own_reasons_are_in_the_words_of_the_pairs(self, tmp_path: Path) -> None:
        assert LEFT_OUT.items() <= REASONS.items()
        pairs = [compared(0, GOOD, BAD)]
        pairs += [
            compared(i, GOOD, BAD, chosen=None, left_out=reason) for i, reason in enumerate(LEFT_OUT, 1)
        ]
        text = self._text(tmp_path, run=MemoryRun(pairs=pairs))
        for reason, meaning in LEFT_OUT.items():
            assert f"| {reason} | 1 | {meaning} |" in text

    def test_no_licence_unless_stated(self, tmp_path: Path) -> None:
        self._text(tmp_path / "none")
        assert "license" not in _head(tmp_path / "none" / "out")
        self._text(tmp_path / "mit", license_="mit")
        assert _head(tmp_path / "mit" / "out")["license"] == "mit"

    def test_says_what_it_was_made_with_and_no_address(self, tmp_path: Path) -> None:
        text = self._text(tmp_path)
        assert "- job.backends.default.model: `m-1`" in text
        who = "oracle · 0123456789abcdef · judge-1 · compare=conversation"
        assert f"rows with a preference by `{who}`: 2" in text
        assert "opening template: `export_opening`" in text
        assert "10.9.8.7" not in text
        assert "API_KEY" not in text

    def test_what_others_named_has_no_meaning_in_markdown(self, tmp_path: Path) -> None:
        class Odd(MemoryRun):
            def describe(self) -> dict[str, Any]:
                return {"model": "x`\n# <b>heading</b>"}

        text = self._text(tmp_path, run=Odd(pairs=RUN.pairs))
        assert "- model: `x' # <b>heading</b>`" in text

    @pytest.mark.parametrize("name", EXPORTERS)
    def test_shows_how_to_load_it(self, name: str, tmp_path: Path) -> None:
        text = self._text(tmp_path, name)
        assert "THIS_FOLDER" in text
        assert len(EXPORTERS[name].use.splitlines()) <= 6


def test_a_leftover_of_a_killed_export_is_no_obstacle(tmp_path: Path) -> None:
    stale = tmp_path / f".out.{os.getpid()}.part"
    stale.mkdir()
    (stale / "train.jsonl").write_text("half")
    _export("trl-sft", RUN, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
