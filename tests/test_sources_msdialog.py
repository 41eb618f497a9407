"""Features of MSDialog, point by point, on one run of the shipped forum job.

One short check for each capability of the source; the domains' own tests have the details. The sources' own
programs are run on the same exports in tests/rl/apart.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import edgen
from tests.layers import put_layer

pytestmark = pytest.mark.integration
INTENTS = {"OQ", "RQ", "CQ", "FD", "FQ", "IR", "PA", "PF", "NF", "GG", "JK", "O"}
NAMES = ("Original Question", "Potential Answer", "Further Details", "Greetings/Gratitude", "Junk", "Others")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    made = edgen.generate(
        "jobs/tech_support.yaml",
        conversations=80,
        output=tmp_path_factory.mktemp("msdialog") / "run",
        progress=False,
    )
    edgen.annotate(made, "msdialog_intents", annotators=3, progress=False)
    return edgen.open(made.folder)


def dialogs(run: edgen.Run, folder: Path, name: str, **options: Any) -> dict[str, Any]:
    run.export(name, folder, **options)
    return {
        key: value for path in folder.glob("*.json") for key, value in json.loads(path.read_text()).items()
    }


@pytest.fixture(scope="module")
def complete(run: edgen.Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return dialogs(run, tmp_path_factory.mktemp("complete") / "out", "msdialog-complete")


@pytest.fixture(scope="module")
def ranked(run: edgen.Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[list[str]]]]:
    """Return the lines of each file, grouped by context."""
    folder = tmp_path_factory.mktemp("ranked") / "out"
    run.export("msdialog-responserank", folder)
    return {
        path.stem: [
            [*lines]
            for _, lines in itertools.groupby(
                (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()),
                lambda parts: parts[1:-1],
            )
        ]
        for path in folder.glob("*.txt")
    }


def test_msdialog_01_metadata_of_dialogs_and_utterances(complete: dict[str, Any]) -> None:
    ids = []
    for dialog in complete.values():
        assert dialog.keys() == {"category", "dialog_time", "title", "frequency", "utterances"}
        assert isinstance(dialog["frequency"], str)
        for place, one in enumerate(dialog["utterances"], 1):
            assert one.keys() == {"affiliation", "utterance_time", "utterance_pos", "id", "user_id", "actor_type", "utterance",
                                  "is_answer", "vote"}  # fmt: skip
            assert one["utterance_pos"] == place
            assert isinstance(one["id"], int)
            assert re.fullmatch("[0-9]+", one["vote"])
            assert one["is_answer"] in (0, 1)
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", one["utterance_time"])
            ids.append(one["id"])
    assert len(ids) == len({*ids})


def test_msdialog_02_several_participants_users_and_agents(complete: dict[str, Any]) -> None:
    people = [
        {one["user_id"]: one["actor_type"] for one in dialog["utterances"]} for dialog in complete.values()
    ]
    assert {kind for one in people for kind in one.values()} == {"User", "Agent"}
    assert max(map(len, people)) > 2


def test_msdialog_03_twelve_intents_by_most_of_several_annotators_and_ties_are_marked(
    run: edgen.Run, complete: dict[str, Any], tmp_path: Path
) -> None:
    found = dialogs(run, tmp_path / "out", "msdialog-intent", layer="msdialog_intents")
    assert {*found} <= {*complete}
    units = {
        (unit.id, unit.turn): unit for unit in edgen.annotate(run, layer="msdialog_intents", progress=False)
    }
    for name, dialog in found.items():
        for place, one in enumerate(dialog["utterances"]):
            unit = units[name, place]
            assert len(unit.annotators) == 3
            assert {*one["tags"].split()} <= INTENTS
            assert one.get("tie", False) == unit.tie == (not one["tags"])
            assert one["id"] == complete[name]["utterances"][place]["id"]


def test_msdialog_03_a_tie_is_marked_and_has_no_tags(run: edgen.Run, tmp_path: Path) -> None:
    put_layer(run.folder, "tied", lambda _, turn: [] if turn == 1 else [NAMES[0]])
    found = dialogs(edgen.open(run.folder), tmp_path / "out", "msdialog-intent", layer="tied")
    assert found
    for dialog in found.values():
        for place, one in enumerate(dialog["utterances"]):
            assert (one["tags"], one.get("tie", False)) == (("", True) if place == 1 else ("OQ", False))


def test_msdialog_04_the_choice_of_threads(run: edgen.Run, tmp_path: Path) -> None:
    chosen = edgen.select(
        run, tmp_path / "chosen", "3 <= turns <= 10 and 2 <= participants <= 4 and outcome.accepted"
    )
    found = [*chosen.conversations()]
    assert 0 < len(found) < 80
    for one in found:
        assert 3 <= len(one.turns) <= 10
        assert 2 <= len({turn.data["user_id"] for turn in one.turns}) <= 4
        assert any(turn.data["is_answer"] for turn in one.turns)


@pytest.mark.parametrize(
    ("name", "file"),
    [("msdialog-complete", "train.json"), ("msdialog-intent", "train.json"), ("intent-prediction", "train.tsv"),
     ("msdialog-responserank", "valid.txt")],
)  # fmt: skip
def test_msdialog_05_all_four_layouts(name: str, file: str, run: edgen.Run, tmp_path: Path) -> None:
    layer = {"layer": "msdialog_intents"} if "intent" in name else {}
    run.export(name, tmp_path / "out", **layer)
    assert (tmp_path / "out" / file).stat().st_size


def test_msdialog_06_contexts_of_2_to_11_turns_before_an_agents_reply(
    run: edgen.Run, ranked: dict[str, list[list[list[str]]]]
) -> None:
    expected: dict[tuple[str, ...], set[str]] = {}
    for one in run.conversations():
        texts = [" ".join(turn.text.split()) for turn in one.turns]
        actors = [turn.data["actor_type"] for turn in one.turns]
        if len(texts) < 3:
            continue
        for at in range(1, len(texts) - 1):
            if (actors[at], actors[at + 1]) == ("User", "Agent"):
                expected.setdefault((texts[0], *texts[max(1, at - 9) : at + 1]), set()).add(texts[at + 1])
    found = {tuple(lines[0][1:-1]): lines for groups in ranked.values() for lines in groups}
    # Threads of this run are shorter than 11 turns; tests/domains/retrieval/test_msdialog.py has longer ones.
    assert found.keys() <= expected.keys()
    assert len(found) > 0.9 * len(expected)
    assert {len(context) for context in found} <= {*range(2, 12)}
    assert all(
        lines[0][-1].removeprefix(" <<<AGENT>>>: ") in expected[context] for context, lines in found.items()
    )


def test_msdialog_07_nine_wrong_replies_near_the_true_one_and_none_of_the_test_side(
    run: edgen.Run, ranked: dict[str, list[list[list[str]]]]
) -> None:
    known = {
        " ".join(turn.text.split())
        for one in run.conversations()
        if one.split == "train"
        for turn in one.turns
    }
    assert ranked.keys() == {"train", "valid", "test"}
    for groups in ranked.values():
        assert groups
        for lines in groups:
            assert [line[0] for line in lines] == ["1", *["0"] * 9]
            replies = [line[-1].removeprefix(" <<<AGENT>>>: ") for line in lines]
            assert len({*replies}) == 10
            assert {*replies[1:]} <= known
            assert all(3 <= len(reply.split()) <= 400 for reply in replies[1:])


def test_msdialog_08_a_split_by_time(run: edgen.Run, tmp_path: Path) -> None:
    new = edgen.select(run, tmp_path / "new", split_by="outcome.dialog_time", in_order=True, test=0.2)
    times: dict[str, list[str]] = {"train": [], "test": []}
    for one in new.conversations():
        times[one.split].append((one.outcome or {})["dialog_time"])
    assert max(times["train"]) < min(times["test"])


def test_msdialog_09_members_have_no_names(complete: dict[str, Any]) -> None:
    assert all(
        re.fullmatch("user_[0-9a-f]{12}", one["user_id"])
        for dialog in complete.values()
        for one in dialog["utterances"]
    )


def test_msdialog_10_the_table_of_participants(run: edgen.Run) -> None:
    value = run.stats(["participants"]).arms[""]["participants"]
    people = [len({turn.data["user_id"] for turn in one.turns}) for one in run.conversations()]
    turns = [len(one.turns) for one in run.conversations()]
    for found, numbers in ((value.participants, people), (value.turns, turns)):
        assert (found.min, found.max, found.median) == (
            min(numbers),
            max(numbers),
            statistics.median_low(numbers),
        )
        assert found.mean == pytest.approx(statistics.mean(numbers))
    assert value.words.n == len(turns)


def test_msdialog_11_labels_are_normalised(run: edgen.Run, tmp_path: Path) -> None:
    put_layer(
        run.folder,
        "many",
        lambda _, turn: NAMES if turn == 0 else [NAMES[(turn or 0) % 6], "Greetings/Gratitude"],
    )
    edgen.open(run.folder).export("intent-prediction", tmp_path / "out", layer="many")
    labels = Counter(
        line.split("\t")[0]
        for path in (tmp_path / "out").glob("*.tsv")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line
    )
    assert "FD_OQ_PA" in labels
    assert not any("_" in one and {"GG", "O", "JK"} & {*one.split("_")} for one in labels)
    assert len(labels) <= 32


def test_msdialog_12_a_file_of_features(run: edgen.Run, tmp_path: Path) -> None:
    run.export("intent-prediction", tmp_path / "out", layer="msdialog_intents", features="all")
    for path in (tmp_path / "out").glob("*_features.tsv"):
        rows = [row for row in csv.reader(path.open(encoding="utf-8"), delimiter="\t") if row]
        assert rows
        assert {len([*map(float, values.split(" "))]) for _, values in rows} == {24}


def test_msdialog_13_jaccard_f1_map_and_recall(run: edgen.Run, tmp_path: Path) -> None:
    run.export("intent-prediction", tmp_path / "out", layer="msdialog_intents")
    truth = tmp_path / "out" / "test.tsv"
    lines = [line.split("\t") for line in truth.read_text(encoding="utf-8").splitlines()]
    predicted = [["PA", *line[1:]] if len(line) > 1 else line for line in lines]
    (tmp_path / "p.tsv").write_text("".join("\t".join(line) + "\n" for line in predicted), encoding="utf-8")
    figures = edgen.score(truth, tmp_path / "p.tsv").figures
    said = [{*line[0].split("_")} for line in lines if len(line) > 1]
    # figures are rounded to six significant digits
    assert figures.by_unit.value == pytest.approx(
        sum(len(one & {"PA"}) / len(one | {"PA"}) for one in said) / len(said), rel=1e-5
    )
    hits = sum("PA" in one for one in said)
    assert figures.micro.f1.value == pytest.approx(2 * hits / (len(said) + sum(map(len, said))), rel=1e-5)
