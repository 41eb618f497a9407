"""Features of utterances next to intent prediction's lines."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from edgen.core.errors import UsageError
from edgen.core.values import Turn
from edgen.domains.retrieval.export.intent_features import FEATURES, Features
from edgen.domains.retrieval.export.sentiment import NEGATIVE, NEGATORS, POSITIVE, compute_sentiment
from edgen.store.run_parts import AcceptedConversation
from tests.domains.retrieval.test_msdialog import run_of
from tests.export.runs import FORMATS
from tests.export.test_spaces import accepted

SAID = (
    ("Learner", "Why does my knot come undone? I did not pull it."),
    ("Tutor", "What rope is it? Knots in slippery ropes slip, and knotted ropes too!"),
    ("Learner", "Thanks, that helped; it is the same rope. It does n't fail."),
)


def labelled(*said: tuple[str, str], index: int = 0) -> AcceptedConversation:
    one = accepted(index, 0, said)
    turns = tuple(Turn(turn.role, turn.text, labels=("PA",)) for turn in one.candidate.turns)
    return replace(one, candidate=replace(one.candidate, turns=turns), split="train")


def features(*said: tuple[str, str]) -> list[dict[str, str]]:
    found = Features()
    for _, text in said:
        found.add(text)
    rows = found.of([text for _, text in said], ["Agent" if role == "Tutor" else "User" for role, _ in said])
    return [dict(zip(FEATURES, row, strict=True)) for row in rows]


def test_there_are_the_24_features_of_the_paper_in_three_groups() -> None:
    assert len(FEATURES) == 24
    assert [*FEATURES.values()] == sorted(FEATURES.values(), key=["content", "structural", "sentiment"].index)
    assert [[*FEATURES.values()].count(group) for group in ("content", "structural", "sentiment")] == [
        10,
        6,
        8,
    ]


def test_each_feature_says_what_the_paper_says() -> None:
    first, second, third = features(*SAID)
    assert (first["initial_similarity"], first["question_mark"], third["question_mark"]) == (
        "1.0000",
        "1",
        "0",
    )
    assert [one["duplicate"] for one in (first, second, third)] == ["0", "0", "1"]
    assert [first[word] for word in ("how", "what", "why", "who", "where", "when")] == [
        "0",
        "0",
        "1",
        "0",
        "0",
        "0",
    ]
    assert second["what"] == "1"
    assert [one["absolute_position"] for one in (first, second, third)] == ["1", "2", "3"]
    assert [one["normalized_position"] for one in (first, second, third)] == ["0.3333", "0.6667", "1.0000"]
    assert [one["is_starter"] for one in (first, second, third)] == ["1", "0", "1"]
    assert [one["thank"] for one in (first, second, third)] == ["0", "0", "1"]
    assert [one["exclamation_mark"] for one in (first, second, third)] == ["0", "1", "0"]
    assert [one["feedback"] for one in (first, second, third)] == ["1", "0", "0"]
    # rope, knots, slippery, ropes, slip, knotted, ropes: six different words; stems: rope, knot, slipperi,
    # slip
    assert (second["length"], second["unique_length"], second["unique_stemmed_length"]) == ("7", "6", "4")
    assert (third["positive_words"], third["negative_words"]) == ("2", "1")
    assert float(third["positive"]) == pytest.approx(3 / 12, abs=1e-4)  # "n't fail" counts as well


def test_similarities_are_cosines_of_words_by_how_rare_they_are() -> None:
    said = (("Learner", "rope rope knot"), ("Tutor", "rope"), ("Learner", "stove"), ("Tutor", "lid"))
    rows = features(*said)
    idf = {"rope": math.log(2.5 / 2.5), "knot": math.log(3.5 / 1.5), "stove": math.log(3.5 / 1.5), "lid": math.log(3.5 / 1.5)}  # fmt: skip
    whole = {word: idf[word] * count for word, count in (("rope", 3), ("knot", 1), ("stove", 1), ("lid", 1))}
    length = math.sqrt(sum(value**2 for value in whole.values()))
    assert float(rows[2]["dialog_similarity"]) == pytest.approx(whole["stove"] / length, abs=1e-4)
    assert float(rows[2]["initial_similarity"]) == 0
    assert float(rows[1]["initial_similarity"]) == 0  # a word in half of the texts has no weight


@pytest.mark.parametrize("text", ["", "?", "…", "a", "日本語です", "😀 😀", "it's", "NOT GOOD"])
def test_any_text_has_features_within_bounds(text: str) -> None:
    for one in features(("Learner", text), ("Tutor", "fine")):
        values = [float(one[name]) for name in FEATURES]
        assert all(math.isfinite(value) for value in values)
        shares = [float(one[name]) for name in ("negative", "neutral", "positive")]
        assert sum(shares) == pytest.approx(1, abs=2e-4) or sum(shares) == 0
        assert all(0 <= share <= 1 for share in shares)


def test_a_negator_turns_the_words_after_it_round_and_the_lists_keep_apart() -> None:
    assert not POSITIVE & NEGATIVE
    assert not NEGATORS & (POSITIVE | NEGATIVE)
    good, bad = compute_sentiment("this is good"), compute_sentiment("this is n't good")
    assert (good.positive, good.negative) == (1 / 3, 0)
    assert (bad.positive, bad.negative, bad.positive_words) == (0, 1 / 4, 1)
    assert compute_sentiment("not a b c good").positive == 1 / 5
    assert compute_sentiment("").neutral == 0


def test_features_stand_line_by_line_next_to_the_utterances(tmp_path: Path) -> None:
    taught = [labelled(*SAID), labelled(*SAID[1:], index=1)]
    options = {"features": "all"}
    export_to(taught, tmp_path / "all", options)
    export_to(taught, tmp_path / "plain")
    plain = (tmp_path / "plain" / "train.tsv").read_text()
    assert (tmp_path / "all" / "train.tsv").read_text() == plain
    assert not (tmp_path / "plain" / "train_features.tsv").exists()
    lines = (tmp_path / "all" / "train_features.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == [line.split("\t")[0] for line in plain.splitlines()]
    assert {len(line.split("\t")[1].split(" ")) for line in lines if line} == {24}
    assert (
        "initial_similarity, dialog_similarity, question_mark" in (tmp_path / "all" / "README.md").read_text()
    )
    groups = {}
    for group, size in (("content", 10), ("structural", 6), ("sentiment", 8)):
        export_to(taught, tmp_path / group, {"features": group})
        groups[group] = (tmp_path / group / "train_features.tsv").read_text().splitlines()
        assert {len(line.split("\t")[1].split(" ")) for line in groups[group] if line} == {size}
    joined = [
        " ".join(line.split("\t")[1] for line in parts) if parts[0] else ""
        for parts in zip(*groups.values(), strict=True)
    ]
    assert joined == [line.partition("\t")[2] for line in lines]


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UsageError, match="--features some: expected one of none, all, content, structural, sentiment"
    ):
        export_to([labelled(*SAID)], tmp_path / "out", {"features": "some"})
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *_: None if name == "snowballstemmer" else object()
    )
    with pytest.raises(
        UsageError, match="Features of intents need snowballstemmer, of the extra 'retrieval'"
    ):
        export_to([labelled(*SAID)], tmp_path / "out", {"features": "all"})


def export_to(
    taught: list[AcceptedConversation], folder: Path, options: dict[str, str] | None = None
) -> None:
    from edgen.export.write import export

    format_ = FORMATS["intent-prediction"]
    export(run_of(taught), format_, folder, format_.read(options or {}))  # type: ignore[arg-type]
