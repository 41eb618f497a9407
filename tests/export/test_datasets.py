"""The formats of whole data sets: the content of their files, and the text of their cards."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from edgen.core.errors import RunError
from edgen.export.card import Contents, render_front_matter
from edgen.export.caveats import SETTLED, list_caveats
from edgen.export.rows import DataTable, Row
from edgen.export.shared_options import ExportOptions
from tests.export.folders import BAD, GOOD, RUN, head, write
from tests.export.runs import FORMATS, OF_EDUCATION, SPACE, MemoryRun, chat, job, lesson, turns
from tests.late import Late

parquet = Late("pyarrow.parquet")

ODD = turns(
    'T He said: "one, two"\r\nand\n\n left.',
    "S =SUM(A1:A9)",
    "T 🙂 é \u2028 ' ; \t",
    "S NA",
    "T \x00\x1b[31m",
)
DATA_SETS = ("hf", "convokit", "csv", "ed")


def rows(name: str, run: MemoryRun) -> list[dict[str, Any]]:
    return [item.value for item in FORMATS[name].rows(run, chat()) if isinstance(item, Row)]


def armed(*arms: str | None) -> MemoryRun:
    """Return a run with a conversation of each arm, and one scenario in all arms."""
    taught = []
    for number, arm in enumerate(arms):
        one = lesson(0, number, GOOD)
        candidate = msgspec.structs.replace(one.candidate, arm=arm, replicate=0, probability=0.25)
        made = {"model": f"m-{number}", "template_sha256": f"{number}" * 8}
        taught.append(msgspec.structs.replace(one, candidate=candidate, provenance=made))
    return MemoryRun(taught)


class Finished(MemoryRun):
    """A run that reports an outcome for each planned conversation."""

    def describe(self) -> dict[str, Any]:
        counts = {"planned": 50, "accepted": 40, "rejected": {"refusal": 5, "cut_off": 2}, "failed": {"timeout": 1},
                  "pending": 2}  # fmt: skip
        return {**super().describe(), **{key: {"tiny": counts[key]} for key in SETTLED}}


class TestHub:
    def test_a_row(self) -> None:
        assert rows("hf", armed("new"))[0] == {
            "id": "tiny-000000-r0",
            "conversation": [
                {"role": "Teacher", "text": "What is half of 4?"},
                {"role": "Student", "text": "No idea."},
                {"role": "Teacher", "text": "Draw four dots."},
                {"role": "Student", "text": "Two! [end of conversation]"},
            ],
            "topic": "fractions",
            "student_preference": "drawings",
            "student_reaction": "sulks in a corner",
            "teacher_preference": "long lectures",
            "teacher_reaction": "speaks louder",
            "subject": None,
            "level": None,
            "probability": 0.25,
            "ended_by": "Student",
            "scenario": 0,
            "replicate": 0,
            "arm": "new",
            "model": "m-0",
            "template_sha256": "00000000",
            "simulated": True,
        }

    @pytest.mark.parametrize("storage", ["parquet", "jsonl"])
    @pytest.mark.parametrize(("train", "files"), [(1, [1]), (2, [1, 1]), (5, [3, 2]), (2003, [1002, 1001])])
    def test_files_are_named_and_filled_as_on_the_hub(
        self, storage: str, train: int, files: list[int], tmp_path: Path
    ) -> None:
        taught = [lesson(i, 0, GOOD) for i in range(train)] + [lesson(train, 0, BAD, "test")]
        write("hf", MemoryRun(taught), tmp_path / "out", files=storage)
        names = [f"train-{i:05d}-of-{len(files):05d}.{storage}" for i in range(len(files))]
        assert sorted(p.name for p in (tmp_path / "out" / "data").iterdir()) == [
            f"test-00000-of-00001.{storage}",
            *names,
        ]
        found = [self._ids(tmp_path / "out" / "data" / name) for name in names]
        assert [len(ids) for ids in found] == files
        assert [one for ids in found for one in ids] == [f"tiny-{i:06d}-r0" for i in range(train)]

    def _ids(self, path: Path) -> list[str]:
        if path.suffix == ".parquet":
            ids: list[str] = parquet.read_table(path)["id"].to_pylist()
            return ids
        return [json.loads(line)["id"] for line in path.read_text().splitlines()]

    def test_a_column_without_values_has_its_type(self, tmp_path: Path) -> None:
        """The last row alone has a probability, and no row an arm."""
        last = armed(None).taught[0]
        write("hf", MemoryRun([*(lesson(i, 0, GOOD) for i in range(1500)), last]), tmp_path / "out")
        types = [
            {field.name: str(field.type) for field in parquet.read_schema(path)}
            for path in sorted((tmp_path / "out" / "data").glob("train-*"))
        ]
        assert types[0] == types[1]
        assert (types[0]["probability"], types[0]["arm"], types[0]["subject"]) == (
            "double",
            "string",
            "string",
        )

    def test_both_ways_of_storing_hold_the_same(self, tmp_path: Path) -> None:
        run = MemoryRun([lesson(0, 0, ODD), lesson(1, 0, GOOD)])
        for storage in ("parquet", "jsonl"):
            write("hf", run, tmp_path / storage, files=storage)
        one = [
            row
            for p in sorted((tmp_path / "parquet/data").iterdir())
            for row in parquet.read_table(p).to_pylist()
        ]
        two = [
            json.loads(line)
            for p in sorted((tmp_path / "jsonl/data").iterdir())
            for line in p.read_bytes().splitlines()
        ]
        assert one == two == rows("hf", run)

    def test_front_matter(self, tmp_path: Path) -> None:
        write("hf", RUN, tmp_path / "out", language="en", license="cc-by-4.0")
        front = head(tmp_path / "out")
        assert front["pretty_name"] == "tiny"
        assert front["license"] == "cc-by-4.0"
        assert front["language"] == ["en"]
        assert front["size_categories"] == ["n<1K"]
        assert front["task_categories"] == ["text-generation"]
        assert {"synthetic", "education", "simulated"} <= set(front["tags"])
        (info,) = front["dataset_info"]
        assert [feature["name"] for feature in info["features"]] == list(rows("hf", RUN)[0])
        assert {split["name"]: split["num_examples"] for split in info["splits"]} == {"train": 4, "test": 2}

    @pytest.mark.parametrize(("number", "size"), [(999, "n<1K"), (1000, "1K<n<10K"), (9999, "1K<n<10K"), (10000, "10K<n<100K"), (10**12, "n>1T")])  # fmt: skip
    def test_sizes_are_the_hubs(self, number: int, size: str) -> None:
        rows = {"default": {"train": number - 1, "test": 1}}
        contents = Contents(tables=[DataTable({})], rows=rows, left_out={}, patterns={}, evidence={})
        run: Any = RUN
        front = render_front_matter(run, FORMATS["hf"], contents, ExportOptions(), simulated=False)
        assert yaml.safe_load(front.split("---\n")[1])["size_categories"] == [size]

    def test_arms_share_a_table_and_the_card_says_who_made_which(self, tmp_path: Path) -> None:
        write("hf", armed("old", "new"), tmp_path / "out")
        assert [config["config_name"] for config in head(tmp_path / "out")["configs"]] == ["default"]
        text = (tmp_path / "out" / "README.md").read_text()
        assert "Arm `old`: 1 rows by model `m-0` with template_sha256 `00000000`." in text
        assert "Arm `new`: 1 rows by model `m-1` with template_sha256 `11111111`." in text


class TestCroissant:
    def test_it_describes_the_files_that_are_there(self, tmp_path: Path) -> None:
        write("hf", RUN, tmp_path, files="parquet")
        value = json.loads((tmp_path / "croissant.json").read_text())
        listed = {
            part["contentUrl"]: (part["sha256"], part["contentSize"])
            for part in value["distribution"]
            if part["@type"] == "cr:FileObject"
        }
        assert listed == {
            str(path.relative_to(tmp_path)): (
                hashlib.sha256(path.read_bytes()).hexdigest(),
                f"{len(path.read_bytes())} B",
            )
            for path in (tmp_path / "data").iterdir()
        }
        fields = [field["name"] for field in value["recordSet"][1]["field"]]
        assert fields == ["split", *rows("hf", RUN)[0]]
        assert [one["splits/name"] for one in value["recordSet"][0]["data"]] == ["train", "test"]

    def test_nothing_is_made_up(self, tmp_path: Path) -> None:
        write("hf", RUN, tmp_path / "plain")
        value = json.loads((tmp_path / "plain" / "croissant.json").read_text())
        assert not value.keys() & {
            "license",
            "inLanguage",
            "creator",
            "publisher",
            "citeAs",
            "datePublished",
            "url",
        }
        write("hf", RUN, tmp_path / "said", license="mit", language="en")
        value = json.loads((tmp_path / "said" / "croissant.json").read_text())
        assert (value["license"], value["inLanguage"]) == ("mit", "en")

    def test_names_of_splits_and_of_files_give_the_split(self, tmp_path: Path) -> None:
        write("hf", RUN, tmp_path)
        value = json.loads((tmp_path / "croissant.json").read_text())
        pattern = re.compile(value["recordSet"][1]["field"][0]["source"]["transform"]["regex"])
        for name in (
            "train",
            "data/train-00000-of-00002.parquet",
            "/a/test-1/data/train-00001-of-00002.jsonl",
        ):
            found = pattern.match(name)
            assert found is not None
            assert found[1] == "train"


class TestCsv:
    def test_what_is_read_back_is_what_was_said(self, tmp_path: Path) -> None:
        run = MemoryRun([lesson(0, 0, ODD), lesson(1, 0, GOOD, "test")])
        write("csv", run, tmp_path / "out", csv_safe=False)
        with (tmp_path / "out" / "train.csv").open(encoding="utf-8", newline="") as file:
            found = list(csv.DictReader(file))
        assert [(row["role"], row["text"]) for row in found] == [(turn.role, turn.text) for turn in ODD]
        assert [row["turn"] for row in found] == ["0", "1", "2", "3", "4"]
        assert found[0]["arm"] == found[0]["probability"] == ""
        assert found[0]["simulated"] == "true"
        assert (tmp_path / "out" / "train.csv").read_bytes().startswith(b"id,split,scenario,")
        assert "a spreadsheet takes for a formula" in (tmp_path / "out" / "README.md").read_text()


class TestConvokit:
    def _read(
        self, folder: Path
    ) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any], dict[str, Any]]:
        utterances = [json.loads(line) for line in (folder / "utterances.jsonl").read_text().splitlines()]
        names = ("speakers", "conversations", "index")
        speakers, conversations, index = (json.loads((folder / f"{name}.json").read_text()) for name in names)
        return utterances, speakers, conversations, index

    def test_a_corpus(self, tmp_path: Path) -> None:
        write("convokit", RUN, tmp_path / "out")
        utterances, speakers, conversations, index = self._read(tmp_path / "out")
        assert len({one["id"] for one in utterances}) == len(utterances) == 3 * (len(GOOD) + len(BAD))
        assert len(conversations) == 6
        assert set(speakers) == {one["speaker"] for one in utterances}
        assert {name: one["meta"]["split"] for name, one in conversations.items()} == {
            one.candidate.id: one.split for one in RUN.taught
        }
        first = utterances[: len(GOOD)]
        assert [one["text"] for one in first] == [turn.text for turn in GOOD]
        assert [one["reply-to"] for one in first] == [None, *(one["id"] for one in first[:-1])]
        assert [one["timestamp"] for one in first] == [0, 1, 2, 3]
        assert {one["conversation_id"] for one in first} == {first[0]["id"]} == {"tiny-000000-r0"}
        assert speakers[first[0]["speaker"]]["meta"] == {
            "role": "Teacher",
            "preference": "long lectures",
            "reaction": "speaks louder",
        }
        for kind, values in (("conversations", conversations), ("speakers", speakers)):
            assert all(set(one["meta"]) == set(index[f"{kind}-index"]) for one in values.values())

    def test_the_files_are_ascii_and_every_text_is_whole(self, tmp_path: Path) -> None:
        """ConvoKit reads files in the encoding of the machine."""
        write("convokit", MemoryRun([lesson(0, 0, ODD)]), tmp_path / "out")
        for path in (tmp_path / "out").glob("*.json*"):
            path.read_bytes().decode("ascii")
        utterances, *_ = self._read(tmp_path / "out")
        assert [one["text"] for one in utterances] == [turn.text for turn in ODD]


def caveat(word: str, **changes: Any) -> list[str]:
    """Return the caveats of a job that contain this word."""
    return [
        line for line in list_caveats({}, msgspec.structs.replace(job(), **changes), SPACE) if word in line
    ]


class TestCaveats:
    def test_arms_are_no_sample_and_a_run_without_them_has_no_such_line(self) -> None:
        assert caveat("arms", arms={"a": {}, "b": {}})
        assert not caveat("arms")

    def test_balanced_says_what_it_means(self) -> None:
        (line,) = caveat("balanced")
        assert "every cell of the space" in line
        assert "equally often, to within one" in line
        assert "fewer scenarios than cells" in line
        assert not caveat("balanced", design="random")

    def test_every_protocol_that_occurs_has_its_sentence(self) -> None:
        assert [line[:10] for line in caveat("all roles", arms={"a": {}, "b": {"asks": 1}})] == ["One prompt"]
        agents = {"protocol": "selfplay", "prompt": None}
        lines = [*caveat("One prompt", arms={"a": {}, "b": agents, "c": {}})]
        lines += caveat("An agent", arms={"a": {}, "b": agents, "c": {}})
        assert [line.partition(":")[0] for line in lines] == ["Arms a, c", "Arm b"]


class TestCards:
    @pytest.mark.parametrize("name", OF_EDUCATION)
    def test_a_licence_is_what_was_stated_or_nothing(
        self, name: str, tmp_path: Path, exported: Callable[[str], Path]
    ) -> None:
        assert not head(exported(name)).keys() & {"license", "language"}
        assert "No licence was stated for this data." in (exported(name) / "README.md").read_text()
        write(name, RUN, tmp_path / "said", license="odd: [licence] #1", language="pt-BR")
        front = head(tmp_path / "said")
        assert (front["license"], front["language"]) == ("odd: [licence] #1", ["pt"])
        assert front["language_details"] == ["pt-BR"]
        assert "`odd: [licence] #1`" in (tmp_path / "said" / "README.md").read_text()

    @pytest.mark.parametrize("name", DATA_SETS)
    def test_what_became_of_everything_and_what_was_lost(self, name: str, tmp_path: Path) -> None:
        write(name, Finished(RUN.taught), tmp_path / "out")
        text = (tmp_path / "out" / "README.md").read_text()
        assert "| tiny | 50 | 40 | 7 | 1 | 2 |" in text
        assert "Rejected, by reason: refusal 5, cut_off 2." in text
        assert "Survivorship: of 50 planned conversations of tiny, 8 (16.0%) were rejected or failed" in text
        assert "2 of 50 planned conversations of tiny were pending" in text
        assert "Nobody measured whether it is right" in text
        assert f"edgen export AGAIN --to {name} -o DIR" in text

    @pytest.mark.parametrize("name", DATA_SETS)
    def test_simulated_data_is_marked(self, name: str, exported: Callable[[str], Path]) -> None:
        assert "simulated" in head(exported(name))["tags"]
        assert "**A simulator wrote these conversations." in (exported(name) / "README.md").read_text()

    def test_an_arm_is_told_by_what_it_changes_in_the_data(self, tmp_path: Path) -> None:
        class Armed(MemoryRun):
            def describe(self) -> dict[str, Any]:
                facts = super().describe()
                facts["job"]["arms"] = {
                    "plain": {},
                    "new": {
                        "prompt": "/home/somebody/mine.j2",
                        "backends": {"default": {"temperature": 0.2, "base_url": "http://10.9.8.7:2/v1"}},
                    },
                }
                facts["arms"] = {
                    "plain": {"space": "/home/somebody/ours.yaml", "template_sha256": "abc", "edgen": "9"}
                }
                return facts

        write("hf", Armed(RUN.taught), tmp_path / "out")
        text = (tmp_path / "out" / "README.md").read_text()
        assert "- arms.plain.changes: `the job unchanged`" in text
        assert "- arms.plain.template_sha256: `abc`" in text
        assert "- arms.plain.space: `ours`" in text
        assert "- arms.new.changes: `prompt=mine, default.temperature=0.2`" in text
        assert "10.9.8.7" not in text
        assert "somebody" not in text


@pytest.mark.parametrize("name", DATA_SETS)
@pytest.mark.parametrize("storage", ["parquet", "jsonl"])
def test_a_reading_that_breaks_leaves_nothing(name: str, storage: str, tmp_path: Path) -> None:
    class Broken(MemoryRun):
        def conversations(self) -> Any:
            yield from super().conversations()
            raise RunError("tiny: the ledger cannot be read.")

    options = {"files": storage} if name == "hf" else {}
    with pytest.raises(RunError, match="cannot be read"):
        write(name, Broken(RUN.taught), tmp_path / "deep" / "out", **options)
    assert list(tmp_path.iterdir()) == []


def test_the_yaml_of_every_card_is_one_document(exported: Callable[[str], Path]) -> None:
    for name in OF_EDUCATION:
        text = (exported(name) / "README.md").read_text()
        assert text.count("\n---\n") == 1
        assert isinstance(yaml.safe_load(text.split("---\n")[1]), dict)
