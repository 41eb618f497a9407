"""Whole data sets in their readers: `datasets`, mlcroissant and ConvoKit load edgen's exports."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import mlcroissant
import pytest
from datasets import Value, load_dataset

from tests.export.runs import FORMATS, SPACE, TABLES
from tests.rl.pipeline import Exports, edgen

pytestmark = pytest.mark.integration

JOB = """\
name: loaded
seed: 5
conversations: 40
space: education_dialogue
prompt: education_dialogue
backends: {default: {type: simulator, faults: "refusal=0.1,marker_forms=0.3"}}
asks: 1
arms:
  plain: {}
  json: {prompt: education_dialogue_json}
split: {test: 0.2, by: scenario}
shards: {train: 3, test: 1}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with two arms, of which some conversations were refused."""
    folder = tmp_path_factory.mktemp("loaded")
    (folder / "job.yaml").write_text(JOB)
    edgen("generate", "job.yaml", "-o", folder / "run", cwd=folder, code=3)
    return folder / "run"


@pytest.fixture(scope="module")
def records(run: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the run's records by side and id, from its shards."""
    found: dict[str, dict[str, dict[str, Any]]] = {"train": {}, "test": {}}
    for path in run.glob("arms/*/shards/conversations_*.json"):
        side = found["test" if "eval" in path.name else "train"]
        side.update({record["id"]: record for record in json.loads(path.read_text())})
    assert all(found.values())
    return found


def exported(run: Path, name: str, folder: Path, *options: str) -> Path:
    edgen("export", run, "--to", name, "-o", folder / name, *options, cwd=folder)
    return folder / name


def spoken(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the turns of a record, without the end marker."""
    turns = [(turn["role"], turn["text"]) for turn in record["conversation"]]
    role, text = turns[-1]
    return [*turns[:-1], (role, text.removesuffix("[end of conversation]").rstrip())]


@pytest.mark.parametrize("storage", ["parquet", "jsonl"])
def test_datasets_loads_the_hubs_layout(
    storage: str, run: Path, records: dict[str, dict[str, dict[str, Any]]], tmp_path: Path
) -> None:
    folder = exported(run, "hf", tmp_path, "--files", storage)
    data = load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert {side: len(rows) for side, rows in data.items()} == {
        side: len(found) for side, found in records.items()
    }
    assert len(list((folder / "data").glob("train-*-of-00003.*"))) == 3
    for side, rows in data.items():
        assert {row["id"]: row["conversation"] for row in rows} == {
            name: record["conversation"] for name, record in records[side].items()
        }
        for row in rows:
            made = records[side][row["id"]]
            assert row["probability"] == made["probability"]
            assert row["ended_by"] == made["ended_by"]
            assert row["topic"] == made["background_info"]["topic"]
            assert row["student_preference"] == made["background_info"]["student_prefrences"]
            assert row["template_sha256"] == made["provenance"]["template_sha256"]
            assert row["scenario"] == made["provenance"]["scenario"]
            assert row["simulated"]
    assert set(data["train"]["arm"]) == {"plain", "json"}
    assert not set(data["train"]["scenario"]) & set(data["test"]["scenario"])
    features = data["train"].features
    assert features["probability"] == Value("float64")
    assert features["level"] == features["arm"] == Value("string")  # the space has no levels: all are null


def test_datasets_finds_that_a_file_is_missing(run: Path, tmp_path: Path) -> None:
    folder = exported(run, "hf", tmp_path, "--files", "parquet")
    (folder / "data" / "train-00001-of-00003.parquet").unlink()
    with pytest.raises(Exception, match="num_examples"):
        load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))


def test_datasets_loads_the_released_layout_and_the_flat_turns(
    run: Path, records: dict[str, dict[str, dict[str, Any]]], tmp_path: Path
) -> None:
    strict = load_dataset(str(exported(run, "ed", tmp_path)), cache_dir=str(tmp_path / "cache"))
    flat = load_dataset(str(exported(run, "csv", tmp_path)), cache_dir=str(tmp_path / "cache"))
    for side, found in records.items():
        assert sorted(json.dumps(row["conversation"]) for row in strict[side]) == sorted(
            json.dumps(record["conversation"]) for record in found.values()
        )
        said: dict[str, list[tuple[str, str]]] = {}
        for row in flat[side]:
            said.setdefault(row["id"], []).append((row["role"], row["text"]))
        assert said == {name: spoken(record) for name, record in found.items()}
    with (tmp_path / "csv" / "train.csv").open(encoding="utf-8", newline="") as file:
        assert sum(1 for _ in csv.DictReader(file)) == len(flat["train"])


def test_datasets_takes_no_export_for_another_of_the_same_name(run: Path, tmp_path: Path) -> None:
    """Its cache identifies a folder by its last name, although the content has changed."""
    cache = str(tmp_path / "cache")
    (tmp_path / "job.yaml").write_text(JOB)
    edgen("generate", "job.yaml", "-n", "20", "-o", few := tmp_path / "few", cwd=tmp_path, code=3)
    for name in ("trl-sft", "trl-prompts", "ed", "csv", "hf", "sharegpt", "verl"):
        seen = []
        for number, source in enumerate((run, few)):
            folder = tmp_path / f"{name}{number}" / "a"
            folder.parent.mkdir()
            edgen("export", source, "--to", name, "-o", folder, cwd=tmp_path)
            data = load_dataset(str(folder), cache_dir=cache)
            seen.append(sorted(json.dumps(row, sort_keys=True) for side in data.values() for row in side))
        whole, part = seen
        assert whole
        assert part
        assert len(part) < len(whole), f"{name}: the second export was read as the first"


def test_datasets_takes_no_format_for_another_in_the_same_place(run_folder: Path, tmp_path: Path) -> None:
    """Every format is written one after the other to one folder, as when `-o a` is reused."""
    cache, folder = str(tmp_path / "cache"), tmp_path / "a"
    for name in TABLES:
        edgen("export", run_folder, "--to", name, "-o", folder, cwd=tmp_path)
        data = load_dataset(str(folder), cache_dir=cache)
        assert set(data["train"].column_names) == set(FORMATS[name].tables_of(SPACE)[0].columns), name
        shutil.rmtree(folder)


@pytest.mark.parametrize("storage", ["parquet", "jsonl"])
def test_mlcroissant_takes_the_description_and_reads_the_records(
    storage: str, run: Path, records: dict[str, dict[str, dict[str, Any]]], tmp_path: Path
) -> None:
    folder = exported(run, "hf", tmp_path, "--files", storage, "--license", "cc-by-4.0", "--language", "en")
    data = mlcroissant.Dataset(str(folder / "croissant.json"))
    metadata = data.metadata
    assert not metadata.ctx.issues.errors
    # Only recommended properties without a value are reported as missing.
    missing = {
        warning.split('Property "')[1].split('"')[0].rsplit("/")[-1]
        for warning in metadata.ctx.issues.warnings
    }
    assert missing == {"citeAs", "datePublished", "version"}
    assert (metadata.license, metadata.in_language) == (["cc-by-4.0"], ["en"])
    found: dict[str, set[str]] = {"train": set(), "test": set()}
    for record in data.records("conversations"):
        row = {name.removeprefix("conversations/"): value for name, value in record.items()}
        side, name = row["split"].decode(), row["id"].decode()
        found[side].add(name)
        turns = [
            {part.rsplit("/")[-1]: text.decode() for part, text in turn.items()}
            for turn in row["conversation"]
        ]
        assert turns == records[side][name]["conversation"]
        # pandas, which the loader uses, reads a number of JSON to within its last digit
        assert row["probability"] == pytest.approx(records[side][name]["probability"])
        assert row["simulated"] is True
    assert found == {side: set(rows) for side, rows in records.items()}


# In a process of its own: ConvoKit writes a file into the home folder at its first use.
READ = """\
import json, sys
from convokit import Corpus
corpus = Corpus(filename=sys.argv[1])
train = Corpus(filename=sys.argv[1]).filter_conversations_by(lambda one: one.meta["split"] == "train")
conversations = list(corpus.iter_conversations())
assert all(one.check_integrity(verbose=False) for one in conversations)
print(json.dumps({
    "conversations": {
        one.id: [(said.speaker.meta["role"], said.text) for said in one.get_chronological_utterance_list()]
        for one in conversations
    },
    "meta": {one.id: one.meta.to_dict() for one in conversations},
    "chains": [[said.id for said in path] for one in conversations for path in one.get_root_to_leaf_paths()],
    "train": len(list(train.iter_conversations())),
    "speakers": len(list(corpus.iter_speakers())),
    "utterances": len(corpus.get_utterance_ids()),
    "corpus": corpus.meta.to_dict(),
    "frame": len(corpus.get_utterances_dataframe()),
}))
"""


def test_convokit_loads_the_corpus(
    run: Path, records: dict[str, dict[str, dict[str, Any]]], tmp_path: Path
) -> None:
    folder = exported(run, "convokit", tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", READ, str(folder)],
        capture_output=True, text=True, timeout=120, check=False, encoding="utf-8",
        # The plainest of locales: files must be readable without its encoding.
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONUTF8": "0",
             "PYTHONCOERCECLOCALE": "0", "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    everything = records["train"] | records["test"]
    assert {name: [tuple(turn) for turn in turns] for name, turns in found["conversations"].items()} == {
        name: spoken(record) for name, record in everything.items()
    }
    assert (
        found["utterances"] == found["frame"] == sum(len(one["conversation"]) for one in everything.values())
    )
    assert found["speakers"] == 2 * len(everything)
    assert found["train"] == len(records["train"])
    assert len(found["chains"]) == len(everything)  # no conversation forks
    for side, rows in records.items():
        for name, record in rows.items():
            assert found["meta"][name]["split"] == side
            assert found["meta"][name]["probability"] == record["probability"]
            assert found["meta"][name]["ended_by"] == record["ended_by"]
    assert found["corpus"] == {"name": "loaded", "synthetic": True, "simulated": True}


def test_a_run_with_pairs_and_selfplay_loads_too(exports: Exports, tmp_path: Path) -> None:
    lessons = exports.lessons()
    folder = exported(exports.run, "hf", tmp_path)
    data = load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    rows = [row for side in data.values() for row in side]
    assert {row["id"]: spoken(row) for row in rows} == lessons
