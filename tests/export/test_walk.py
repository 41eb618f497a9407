"""Every registered format over two runs: one prompt, and three roles with twelve dimensions.

Each writes files that a reader of the format accepts, or prints in one sentence why not. Other tests use
`check_files`, too.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgen.api.finished import list_formats
from edgen.core.errors import EdgenError
from edgen.core.registry import find
from edgen.export.format import Format
from edgen.export.write import export
from edgen.space import Space
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader
from edgen.validation.schema import conforms
from tests.cli.command import Command

pytestmark = pytest.mark.integration

SIMULATOR = {"default": {"type": "simulator"}}
ONESHOT = {"prompt": "education_dialogue", "conversations": 8, "space": "education_dialogue"}
WORKSHOP = {
    "protocol": "selfplay",
    "conversations": 8,
    "replicates": 3,
    "space": "./space.yaml",
    "prompts": {role: f"./{role}.j2" for role in ("tutor", "learner", "parent")},
    "selfplay": {"max_turns": 10},
    "split": {"test": 0.3, "by": ["topic", "learner"]},
}
SPACE = {
    "name": "workshop",
    "description": "A workshop in which a learner ties a knot alone in the end",
    "dimensions": {
        "topic": {
            "values": [{"value": "Reef knots", "grade": 4}, {"value": "Bowlines", "grade": 6}],
            "label": "Topic",
        },
        "misconception": [
            "pulls the wrong end",
            {"value": "leaves the loop open", "weight": 2, "when": {"topic": "Bowlines"}},
        ],
        "learner": ["shy", "talkative"],
        "tutor_style": ["Socratic", "direct"],
        "parent_mood": ["worried", "relaxed"],
        **{
            name: [f"{name} one", f"{name} two"]
            for name in ("setting", "pace", "goal", "weather", "reading", "tool", "time")
        },
    },
    "roles": {
        "Tutor": {"sees": ["topic", "tutor_style", "setting", "pace", "tool", "time"]},
        "Learner": {"sees": ["topic", "misconception", "learner", "goal", "setting"]},
        "Parent": {"sees": ["topic", "parent_mood", "weather", "reading"]},
    },
}
TEMPLATE = """{%% block system %%}
You are the %s in a conversation. The topic is {{ topic }}.
Say only what the %s says next. When you want to close it, end your turn with [end of conversation].
{%% endblock %%}
{%% block user %%}
It begins.
{%% endblock %%}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("walk")


def _make(folder: Path, name: str, job: dict[str, Any], command: Command, *, pairs: bool) -> Path:
    """Return the run of that name, made on first use."""
    run = folder / name
    if not run.exists():
        (folder / "space.yaml").write_text(yaml.safe_dump(SPACE, sort_keys=False))
        for role in ("tutor", "learner", "parent"):
            (folder / f"{role}.j2").write_text(TEMPLATE % (role, role))
        text = yaml.safe_dump({"name": name, "seed": 3, "backends": SIMULATOR, **job})
        (folder / f"{name}.yaml").write_text(text)
        made = command("generate", folder / f"{name}.yaml", "-o", run)
        assert made.code == 0, made.err
        if pairs:
            judged = command("pairs", run, "--by", "oracle")
            assert judged.code == 0, judged.err
    return run


@pytest.fixture(params=["oneshot", "workshop"])
def run(request: pytest.FixtureRequest, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    jobs = {"oneshot": ONESHOT, "workshop": WORKSHOP}
    return _make(
        folder, request.param, jobs[request.param], Command(capsys), pairs=request.param != "oneshot"
    )


@pytest.mark.parametrize("name", [one["format"] for one in list_formats()])
def test_a_format_writes_what_its_readers_take_or_says_why_not(name: str, run: Path, tmp_path: Path) -> None:
    format_: Format = find("format", name)
    with RunFolder(run).lock_for_reading(), RunReader(run) as reader:
        try:
            own: dict[str, Any] = (
                {"candidates": 5} if name == "dstc7" else {}
            )  # the runs are too small for more
            opening = {"opening": "user"} if format_.chat else {}  # the pairs part at the very first turn
            exported = export(reader, format_, tmp_path / "out", format_.read(own | opening))
        except EdgenError as error:
            said = str(error)
            assert "\n" not in said
            assert said.endswith((".", "it."))
            paired = RunFolder(run).pairs.exists()
            assert (
                ("pairs" in format_.needs and not paired)
                or {"labels", "events"} & {*format_.needs}  # none of these runs has them
                or reader.family.name != format_.family is not None
            )
            assert list(tmp_path.iterdir()) == []
            return
        check_files(tmp_path / "out", format_, exported.rows, reader.space)


def check_files(out: Path, format_: Format, counts: dict[str, dict[str, int]], space: Space) -> None:
    """Check that the files of an export fit the format's readers, with as many rows as reported."""
    tables = {table.name: list(table.columns) for table in format_.tables_of(space)}
    head = yaml.safe_load((out / "README.md").read_text().split("---\n")[1])
    if not head.get("configs"):
        written = sum(counts["default"].values())
        if (out / "corpus.json").exists():
            _check_corpus(out, written)
        else:
            files = [*out.glob("t*.*"), *out.glob("valid.*"), *out.glob("*_subtask_1.json")]
            assert sum(map(_entries, files)) == written
        return
    for config in head["configs"]:
        for part in config["data_files"]:
            files = sorted(out.glob(part["path"]))
            rows = [row for path in files for row in _read(path)]
            assert len(rows) == counts[config["config_name"]][part["split"]] > 0
            assert all(list(row) == tables[config["config_name"]] for row in rows)
    if format_.card.hub or format_.name == "csv":
        assert all(one in rows[0] or f"scenario.{one}" in rows[0] for one in space.names)
    if format_.family == "education":
        assert all(conforms(row) for row in rows)


def _read(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix == ".parquet":
        import pyarrow.parquet

        yield from pyarrow.parquet.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)
    elif path.suffix == ".jsonl":
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())
    else:
        yield from json.loads(path.read_text(encoding="utf-8"))


def _entries(path: Path) -> int:
    """Return the number of entries: dialogs by their ids, or one per line."""
    text = path.read_text(encoding="utf-8")
    return len(json.loads(text)) if path.suffix == ".json" else len(text.splitlines())


def _check_corpus(folder: Path, conversations: int) -> None:
    """Check a corpus as ConvoKit reads it.

    Every speaker and conversation of an utterance exists, and every metadatum has the type that the index
    names or is empty.
    """
    speakers, talks, index = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("speakers", "conversations", "index")
    )
    assert len(talks) == conversations
    types = {"str": str, "int": int, "float": float, "bool": bool}
    for of, metadata in (("speakers", speakers), ("conversations", talks)):
        known = {name: types[kind[0].split("'")[1]] for name, kind in index[f"{of}-index"].items()}
        for one in metadata.values():
            assert all(value is None or isinstance(value, known[name]) for name, value in one["meta"].items())
    for line in (folder / "utterances.jsonl").read_text().splitlines():
        utterance = json.loads(line)
        assert utterance["speaker"] in speakers
        assert utterance["conversation_id"] in talks
