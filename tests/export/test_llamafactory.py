"""Every row satisfies the rules of LLaMA-Factory's loader, restated here from its source.

The rules are those of data/README.md, src/llamafactory/data/parser.py (the meaning of an entry of
dataset_info.json), converter.py (the sharegpt layout) and processor/pairwise.py and feedback.py (which
examples are kept), as of 0.9.6.dev0 (August 2026).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgen.export.shared_options import Opening
from edgen.export.write import export
from tests.export.runs import FORMATS, MemoryRun, compared, turns

LLAMAFACTORY = FORMATS["llamafactory"]
GOOD = turns("T What is half of 4?", "S No idea.", "T Draw four dots.", "S Two!")
BAD = turns("T What is half of 4?", "S No idea.", "T Think.")
LATE = turns("S Hi.", "T Hello.", "S What is it?", "T Fractions.")
EARLY = turns("S Hi.", "T Hey.", "S What is it?", "T Halves.")
RUN = MemoryRun(
    pairs=[
        compared(0, GOOD, BAD),
        compared(1, EARLY, LATE, chosen="b", strengths=(-1.0, 1.0)),
        compared(2, turns("T Why?", "S Ok."), turns("T How?", "S Ok."), split="test"),
    ]
)

# The keys that data/README.md documents.
OF_ENTRY = {
    *(
        "hf_hub_url",
        "ms_hub_url",
        "script_url",
        "cloud_file_name",
        "file_name",
        "formatting",
        "ranking",
        "subset",
    ),
    *("split", "folder", "num_samples", "columns", "tags"),
}
OF_COLUMNS = {
    *("prompt", "query", "response", "history", "messages", "system", "tools", "images", "videos", "audios"),
    *("chosen", "rejected", "kto_tag"),
}


def made(folder: Path, run: MemoryRun = RUN, opening: Opening | None = "user") -> Path:
    export(run, LLAMAFACTORY, folder / "out", LLAMAFACTORY.read({"opening": opening}))
    return folder / "out"


def read(folder: Path, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return an entry and its rows, as `dataset_dir` and `dataset` name them."""
    entry = json.loads((folder / "dataset_info.json").read_text())[name]
    lines = (folder / entry["file_name"]).read_text(encoding="utf-8").splitlines()
    return entry, [json.loads(line) for line in lines]


def kept(entry: dict[str, Any], row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the prompt, the answers and the system message of a row; None if it is skipped."""
    columns = entry["columns"]  # if any is named, none has a default
    said = list(row[columns["messages"]])
    system = said.pop(0)["value"] if said and said[0]["from"] == "system" else ""
    alternates = all(one["from"] == ("human", "gpt")[place % 2] for place, one in enumerate(said))
    if not alternates or len(said) % 2 != bool(entry.get("ranking")):
        return None
    if entry.get("ranking"):
        answers = [row[columns["chosen"]], row[columns["rejected"]]]
        prompt = said
    else:
        assert isinstance(row[columns["kto_tag"]], bool)
        prompt, answers = said[:-1], said[-1:]
    # an answer without text would be taken for the empty half of the other kind
    if len(prompt) % 2 == 0 or not all(one["from"] == "gpt" and one["value"] for one in answers):
        return None
    return {
        "system": system,
        "prompt": [one["value"] for one in prompt],
        "answers": [x["value"] for x in answers],
    }


def test_its_entries_have_documented_keys_and_files(tmp_path: Path) -> None:
    folder = made(tmp_path)
    entries = json.loads((folder / "dataset_info.json").read_text())
    assert list(entries) == ["kto_test", "kto_train", "preference_test", "preference_train"]
    for name, entry in entries.items():
        assert entry.keys() <= OF_ENTRY
        assert entry["columns"].keys() <= OF_COLUMNS
        assert entry["formatting"] == "sharegpt"
        assert entry.get("ranking", False) is name.startswith("preference")
        path = folder / entry["file_name"]
        assert path.is_file()
        assert path.suffix == ".jsonl"
        assert {*entry["columns"].values()} <= json.loads(path.read_text().splitlines()[0]).keys()


@pytest.mark.parametrize("opening", ["user", "both"])
def test_no_row_is_skipped(opening: Opening, tmp_path: Path) -> None:
    folder = made(tmp_path, opening=opening)
    for name in ("preference_train", "preference_test", "kto_train", "kto_test"):
        entry, rows = read(folder, name)
        for row in rows:
            found = kept(entry, row)
            assert found is not None
            assert bool(found["system"]) == (opening == "both")


def test_a_preference_has_the_shared_part_and_both_answers(tmp_path: Path) -> None:
    entry, rows = read(made(tmp_path), "preference_train")
    assert [kept(entry, row) for row in rows] == [
        {
            "system": "",
            "prompt": [
                "Hello! I am here for our lesson on fractions.",
                "What is half of 4?",
                "No idea.",
            ],
            "answers": ["Draw four dots.", "Think."],
        },
        {"system": "", "prompt": ["Hi."], "answers": ["Hello.", "Hey."]},
    ]


def test_a_turn_is_good_or_bad(tmp_path: Path) -> None:
    entry, rows = read(made(tmp_path), "kto_train")
    found = [(kept(entry, row), row["kto_tag"]) for row in rows]
    assert [(one["answers"], tag) for one, tag in found if one is not None] == [
        (["Draw four dots."], True),
        (["Think."], False),
        (["Hello."], True),
        (["Hey."], False),
    ]


def test_what_the_assistant_begins_is_left_out_once(tmp_path: Path) -> None:
    """With a system message alone, a lesson that the teacher begins is left out once."""
    folder = made(tmp_path, opening="system")
    assert list(json.loads((folder / "dataset_info.json").read_text())) == ["kto_train", "preference_train"]
    card = (folder / "README.md").read_text()
    assert "| assistant_first | 2 |" in card
    for name, count in (("preference_train", 1), ("kto_train", 2)):
        entry, rows = read(folder, name)
        assert len(rows) == count
        assert all(kept(entry, row) is not None for row in rows)
