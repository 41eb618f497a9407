"""Exports in MSDialog's layouts."""

from __future__ import annotations

import io
import itertools
import json
import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from edgen.core.errors import ShortError, UsageError
from edgen.core.values import Turn
from edgen.domains.retrieval.negatives import are_alike
from edgen.domains.retrieval.submissions.intents import read_labels
from edgen.export.write import export
from edgen.families.dialogue import DIALOGUE
from edgen.store.run_parts import AcceptedConversation
from tests.export.runs import FORMATS, MemoryRun
from tests.export.test_spaces import SPACE, accepted
from tests.late import Late

pandas = Late("pandas")

WORDS = [
    "rope",
    "knot",
    "loop",
    "end",
    "pull",
    "left",
    "right",
    "over",
    "under",
    "tight",
    "loose",
    "stove",
    "boil",
    "pot",
    "lid",
    "heat",
    "turn",
    "slow",
    "fast",
    "wait",
]


def made(seed: int, count: int = 40) -> list[AcceptedConversation]:
    """Make conversations of three roles; some share a beginning."""
    rng = random.Random(seed)
    found: list[AcceptedConversation] = []
    for index in range(count):
        said = [
            (rng.choice(("Learner", "Learner", "Parent", "Tutor", "Tutor")), " ".join(rng.choices(WORDS, k=rng.randint(1, 9))))
            for _ in range(rng.randint(2, 16))
        ]  # fmt: skip
        if found and rng.random() < 0.5:
            before = [(turn.role, turn.text) for turn in found[-1].candidate.turns]
            at = rng.randrange(len(before))
            said = before[:at] + said[at:]
            said = said if len(said) > 1 else before
        found.append(accepted(index, 0, tuple(said)))
    return found


def run_of(taught: list[AcceptedConversation]) -> MemoryRun:
    return MemoryRun(taught=taught, name="w", space=SPACE, family=DIALOGUE)


def contexts(folder: Path) -> list[tuple[str, list[list[str]]]]:
    """Return each file's lines by context. Neighbouring lines with equal columns share a context, as in
    NeuralResponseRanking's preparation.py."""
    found = []
    for path in sorted(folder.glob("*.txt")):
        lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        groups = itertools.groupby(lines, key=lambda columns: columns[1:-1])
        found += [(path.stem, list(lines)) for _, lines in groups]
    return found


@pytest.mark.parametrize("seed", range(4))
def test_ten_lines_a_context_and_no_wrong_one_is_right(seed: int, tmp_path: Path) -> None:
    taught = made(seed)
    exported = export(run_of(taught), FORMATS["msdialog-responserank"], tmp_path / "out")  # type: ignore[arg-type]
    found = contexts(tmp_path / "out")
    assert found
    assert sum(exported.rows["default"].values()) == 10 * len(found)
    said = {side: {t.text for c in taught if c.split == side for t in c.turns if t.role == "Tutor"}
            for side in ("train", "test")}  # fmt: skip
    after: dict[tuple[str, ...], set[str]] = {}
    for one in taught:
        texts = [turn.text for turn in one.turns]
        for at, turn in enumerate(one.turns[:-1]):
            if at and turn.role != "Tutor" and one.turns[at + 1].role == "Tutor":
                context = (texts[0], *texts[max(1, at - 9) : at + 1])
                after.setdefault(context, set()).add(texts[at + 1])
    keys = [tuple(lines[0][1:-1]) for _, lines in found]
    assert {"train", "valid"} <= {side for side, _ in found}
    assert len({*keys}) == len(keys)
    assert {*keys} <= after.keys()
    for key, (side, lines) in zip(keys, found, strict=True):
        assert [columns[0] for columns in lines] == ["1", *["0"] * 9]
        assert 2 <= len(key) <= 11
        assert all(columns[-1].startswith(" <<<AGENT>>>: ") for columns in lines)
        replies = [columns[-1].removeprefix(" <<<AGENT>>>: ") for columns in lines]
        assert len({*replies}) == 10
        assert replies[0] in after[key] & said["test" if side == "test" else "train"]
        assert {*replies[1:]} <= said["train"]
        assert not any(are_alike(wrong, right) for wrong in replies[1:] for right in after[key])


def opened_by(first: str, count: int = 40, turns: int = 30) -> list[AcceptedConversation]:
    """Make conversations of two alternating roles, with different texts."""
    roles = ("Tutor", "Learner") if first == "Tutor" else ("Learner", "Tutor")
    found = []
    for index in range(count):
        said = [(roles[at % 2], f"{WORDS[at % 20]} {WORDS[index % 20]} {index} {at}") for at in range(turns)]
        one = accepted(index, 0, tuple(said))
        found.append(replace(one, split="test" if index % 5 == 0 else "train"))
    return found


@pytest.mark.parametrize("first", ["Tutor", "Learner"])
def test_contexts_have_the_first_turn_up_to_nine_more_and_the_current_one(first: str, tmp_path: Path) -> None:
    """The source's program makes a context for every user's turn but the first: 2 to 11 turns."""
    taught = opened_by(first)
    exported = export(run_of(taught), FORMATS["msdialog-responserank"], tmp_path / "out")  # type: ignore[arg-type]
    assert not exported.left_out
    found = contexts(tmp_path / "out")
    sizes = {len(lines[0]) - 2 for _, lines in found}
    assert sizes == ({2, 4, 6, 8, 10, 11} if first == "Tutor" else {3, 5, 7, 9, 11})
    assert len(found) == len(taught) * 14
    for _, lines in found:
        first_one, *others = lines[0][1:-1]
        index, last = (int(part) for part in others[-1].split()[2:])
        places = [int(text.split()[3]) for text in others]
        assert places == [*range(max(1, last - 9), last + 1)]
        assert first_one.split()[2:] == [str(index), "0"]
    if first == "Tutor":
        assert sum(len(lines[0]) == 4 for _, lines in found) == len(taught)  # the user's first turn


def test_valid_is_a_share_of_train_and_whole_conversations(tmp_path: Path) -> None:
    taught = opened_by("Learner")
    for share in (0.1, 0.5):
        options = FORMATS["msdialog-responserank"].read({"dev": share})
        export(run_of(taught), FORMATS["msdialog-responserank"], tmp_path / str(share), options)  # type: ignore[arg-type]
        sides: dict[str, set[str]] = {}
        for side, lines in contexts(tmp_path / str(share)):
            sides.setdefault(side, set()).add(lines[0][1].split()[2])
        assert not sides["train"] & sides["valid"] | sides["valid"] & sides["test"]
        assert abs(len(sides["valid"]) - 32 * share) <= 1
        assert len(sides["test"]) == 8
    card = (tmp_path / "0.5" / "README.md").read_text()
    assert "Contexts: 224 train, 224 valid, 112 test" in card


def test_all_three_files_are_there_and_an_empty_one_is_said(tmp_path: Path) -> None:
    taught = [replace(one, split="train") for one in opened_by("Learner")]
    options = FORMATS["msdialog-responserank"].read({"dev": "0"})
    exported = export(run_of(taught), FORMATS["msdialog-responserank"], tmp_path / "out", options)  # type: ignore[arg-type]
    assert {path.name: path.stat().st_size > 0 for path in (tmp_path / "out").glob("*.txt")} == {
        "train.txt": True, "valid.txt": False, "test.txt": False,
    }  # fmt: skip
    assert "no context for valid.txt and test.txt" in exported.remarks[0]
    with pytest.raises(UsageError, match="--dev 1: expected a number, 0 or more, below 1"):
        FORMATS["msdialog-responserank"].read({"dev": "1"})


def test_ids_and_votes_have_the_types_of_the_release(tmp_path: Path) -> None:
    """`id` is a number, unique in the run; `vote` and `frequency` are texts."""
    one, two = accepted(0, 0, (("Tutor", "a"), ("Learner", "b"))), accepted(1, 0, (("Tutor", "c"),))
    votes = (5, "7")
    turns = [
        replace(turn, data={"vote": vote}) for turn, vote in zip(one.candidate.turns, votes, strict=True)
    ]
    taught = [replace(one, candidate=replace(one.candidate, turns=tuple(turns))), two]
    for votes_of_two in (None, True, "many", 2.5, {"up": 1}):
        turn = replace(two.candidate.turns[0], data={"vote": votes_of_two})
        taught[1] = replace(two, candidate=replace(two.candidate, turns=(turn,)))
        folder = tmp_path / str(type(votes_of_two).__name__)
        export(run_of(taught), FORMATS["msdialog-complete"], folder)  # type: ignore[arg-type]
        dialogs = [
            dialog for path in folder.glob("*.json") for dialog in json.loads(path.read_text()).values()
        ]
        said = sorted((u["id"], u["vote"]) for dialog in dialogs for u in dialog["utterances"])
        assert said == [(1, "5"), (2, "7"), (3, "0")]


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        export(run_of(made(1)), FORMATS["msdialog-responserank"], tmp_path / name)  # type: ignore[arg-type]
    one, two = ((tmp_path / name / "train.txt").read_bytes() for name in ("one", "two"))
    assert one == two


def test_a_run_that_is_too_small_for_a_pool_says_so(tmp_path: Path) -> None:
    said = (
        ("Learner", "Where?"),
        ("Tutor", "Left over right."),
        ("Learner", "And now?"),
        ("Tutor", "Pull it."),
    )
    with pytest.raises(ShortError, match=r"small_pool 1 .the run has too few replies"):
        export(run_of([accepted(0, 0, said)]), FORMATS["msdialog-responserank"], tmp_path / "out")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_turns_tell_who_is_an_agent_and_else_the_role_does(tmp_path: Path) -> None:
    one = accepted(0, 0, (("Tutor", "a\tb"), ("Learner", "c"), ("Parent", "d")))
    told = Turn("Learner", "c", data={"actor_type": "Agent", "vote": 3, "is_answer": 1, "user_id": "u7",
                                      "affiliation": "MVP", "utterance_time": "2021-02-03T04:05:06"})  # fmt: skip
    candidate = replace(
        one.candidate,
        turns=(one.turns[0], told, one.turns[2]),
        outcome={"title": "T", "category": "C", "frequency": 4, "dialog_time": "2021-02-03T04:00:00"},
    )
    format_ = FORMATS["msdialog-complete"]
    export(
        run_of([replace(one, candidate=candidate)]),
        format_,
        tmp_path / "out",
        format_.read({"agent": "parent"}),
    )  # type: ignore[arg-type]
    text = (tmp_path / "out" / "train.json").read_text(encoding="utf-8")
    data = pandas.read_json(io.StringIO(text), orient="index", dtype=False)
    dialog = data.loc["w-000000-r0"]
    assert (dialog["title"], dialog["category"], str(dialog["frequency"])) == ("T", "C", "4")
    assert [one["actor_type"] for one in dialog["utterances"]] == ["User", "Agent", "Agent"]
    assert dialog["utterances"][1] == {
        "affiliation": "MVP", "utterance_time": "2021-02-03T04:05:06", "utterance_pos": 2, "id": 2,
        "user_id": "u7", "actor_type": "Agent", "utterance": "c", "is_answer": 1, "vote": "3",
    }  # fmt: skip


def test_every_key_is_there_whatever_a_run_tells(tmp_path: Path) -> None:
    export(run_of(made(2)), FORMATS["msdialog-complete"], tmp_path / "out")  # type: ignore[arg-type]
    for path in (tmp_path / "out").glob("*.json"):
        for _, dialog in pandas.read_json(path, orient="index").iterrows():
            assert [*dialog.keys()] == ["category", "dialog_time", "title", "frequency", "utterances"]
            assert not dialog.isna().any()
            for number, one in enumerate(dialog["utterances"], 1):
                assert one.keys() == {"affiliation", "utterance_time", "utterance_pos", "id", "user_id", "actor_type",
                                      "utterance", "is_answer", "vote"}  # fmt: skip
                assert one["utterance_pos"] == number
                assert one["actor_type"] == ("Agent" if one["affiliation"] == "Tutor" else "User")


def test_who_the_agent_is_counts_for_these_formats_alone() -> None:
    with pytest.raises(UsageError, match="Leave --agent out"):
        FORMATS["hf"].read({"agent": "Tutor"})


def _labelled(*labels: tuple[str, ...], index: int = 0) -> AcceptedConversation:
    """Return a conversation whose turns have these labels."""
    one = accepted(
        index, 0, tuple(("Tutor" if at % 2 else "Learner", f"turn {at}") for at in range(len(labels)))
    )
    turns = tuple(Turn(t.role, t.text, labels=found) for t, found in zip(one.turns, labels, strict=True))
    return replace(one, candidate=replace(one.candidate, turns=turns))


def test_tags_are_the_labels_abbreviated(tmp_path: Path) -> None:
    taught = [
        _labelled(("Original Question", "Greetings/Gratitude"), ("my own label",), ()),
        _labelled((), (), index=1),
    ]
    exported = export(run_of(taught), FORMATS["msdialog-intent"], tmp_path / "out")  # type: ignore[arg-type]
    assert exported.left_out == {"no_labels": 1}
    (dialog,) = pandas.read_json(tmp_path / "out" / "train.json", orient="index")["utterances"]
    assert [one["tags"] for one in dialog] == ["OQ GG", "my-own-label", ""]


def test_intents_are_normalised_as_published(tmp_path: Path) -> None:
    rules = {
        ("GG", "PA"): "PA",
        ("GG", "O", "JK"): "JK",
        ("O", "GG"): "O",
        ("GG",): "GG",
        ("PA", "FD"): "FD_PA",
    }
    taught = [_labelled(*rules), _labelled(("NF",), (), ("PF", "FQ"), index=1)]
    export(run_of(taught), FORMATS["intent-prediction"], tmp_path / "out")  # type: ignore[arg-type]
    text = (tmp_path / "out" / "train.tsv").read_text(encoding="utf-8")
    one, two = ([line.split("\t") for line in part.splitlines()] for part in text.split("\n\n"))
    assert [columns[0] for columns in one] == [*rules.values()]
    assert [columns[1:] for columns in one][:2] == [["turn 0", "User"], ["turn 1", "Agent"]]
    assert two == [["NF", "turn 0", "User"], ["FQ_PF", "turn 2", "User"]]


def test_beyond_the_most_frequent_combinations_one_label_stays(tmp_path: Path) -> None:
    often = [(f"a{n}", f"b{n}") for n in range(32)]
    rare = [(f"c{n}", f"d{n}") for n in range(40)]
    taught = [_labelled(*often, *often, *rare)]
    export(run_of(taught), FORMATS["intent-prediction"], tmp_path / "out")  # type: ignore[arg-type]
    lines = (tmp_path / "out" / "train.tsv").read_text(encoding="utf-8").splitlines()
    labels = [line.split("\t")[0] for line in lines]
    assert labels[:64] == ["_".join(pair) for pair in (*often, *often)]
    assert all(found in pair for found, pair in zip(labels[64:], rare, strict=True))
    assert {found[0] for found in labels[64:]} == {"c", "d"}


def test_score_reads_intents_as_they_are_written(tmp_path: Path) -> None:
    taught = [_labelled(("PA", "FD"), ("GG",)), _labelled(("NF",), index=1)]
    export(run_of(taught), FORMATS["intent-prediction"], tmp_path / "out")  # type: ignore[arg-type]
    found = read_labels(tmp_path / "out" / "train.tsv")
    assert not found.findings
    assert [one.labels for one in found.turns.values()] == [{"PA", "FD"}, {"GG"}, {"NF"}]
