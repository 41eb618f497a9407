"""Advising's two kinds of test sets: paraphrased training conversations, and conversations outside the
training set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import edgen
from edgen.core.errors import ShortError, UsageError
from edgen.core.values import Turn
from edgen.domains.retrieval.negatives import are_alike
from tests.domains.retrieval.test_dstc7 import SIZE, Placed, _sha, examples, made, truth, write


def in_other_words(run: Placed, texts: int = 3) -> dict[str, list[str]]:
    """Write different paraphrases of every tutor's turn; return them by the turn's id."""
    lines, found = [], {}
    for one in run.taught:
        for at, turn in enumerate(one.candidate.turns):
            if turn.role == "Tutor":
                said = [f"way {n} of {one.candidate.id} {at}" for n in range(texts)]
                line = {"id": one.candidate.id, "turn": at, "role": "Tutor", "writer": "x", "texts": said}
                lines.append(json.dumps({**line, "text_sha256": _sha(turn.text)}))
                found[f"{one.candidate.id}-{at + 1}"] = said
    run.rundir.locate_written_texts("paraphrases").write_text(
        "".join(f"{line}\n" for line in lines), encoding="utf-8"
    )
    return found


@pytest.mark.parametrize("subtask", [1, 3, 4])
@pytest.mark.parametrize("texts", [1, 3])
def test_the_first_kind_is_training_conversations_in_other_words(
    subtask: int, texts: int, tmp_path: Path
) -> None:
    run = made(0, tmp_path)
    written = in_other_words(run, texts)
    if subtask == 3 and texts == 1:  # the only paraphrase is reserved for tests
        with pytest.raises(ShortError, match=r"two or more each, one of them for tests .* --texts 3`"):
            write(run, tmp_path / "out", subtask=subtask, tests=1, cuts="all")
        return
    none = {"none": 0.0} if subtask == 4 else {}
    exported = write(run, tmp_path / "out", subtask=subtask, tests=1, cuts="all", **none)
    held = {one.candidate.id for one in run.taught if one.split == "test"}
    assert exported.left_out["unseen"] == len(held)
    sides = {side: examples(tmp_path / "out", side) for side in ("train", "dev", "test")}
    assert all(sides.values())
    trained = {one["example-id"].rpartition("-")[0] for one in sides["train"]}
    assert not held & trained
    said = {one.candidate.id: [turn.text for turn in one.candidate.turns] for one in run.taught}
    seen = json.dumps(sides["train"]) + json.dumps(sides["dev"])
    hidden = truth(tmp_path / "out")
    for one in sides["test"]:
        whole, _, place = one["example-id"].rpartition("-")
        source = whole.removesuffix("-paraphrased")
        assert source in said
        assert source not in held
        context = [message["utterance"] for message in one["messages-so-far"]]
        assert len(context) == int(place) - 1
        assert context != said[source][: len(context)]
        for at, (told, before) in enumerate(zip(context, said[source], strict=False), 1):
            assert told == before or told in written[f"{source}-{at}"]
        pool = {c["candidate-id"]: c["utterance"] for c in one["options-for-next"]}
        ids, answer = hidden[one["example-id"]]
        right = [pool.pop(name) for name in ids]
        assert len(pool) + len(right) == SIZE
        assert right[0] == answer
        assert {*right} <= {*written[f"{source}-{place}"]}
        assert (len(right) > 1) == (subtask == 3 and texts > 1)
        assert not any(f'"{text}"' in seen for text in right)
        others = [*written[f"{source}-{place}"], said[source][int(place) - 1]]
        assert not any(are_alike(wrong, other) for wrong in pool.values() for other in others)
        assert not any(f'"{wrong}"' in seen for wrong in pool.values() if wrong.startswith("way"))


def test_the_second_kind_is_the_runs_test_side_and_what_there_is_without_the_option(tmp_path: Path) -> None:
    run = made(1, tmp_path)
    write(run, tmp_path / "two", tests=2)
    write(run, tmp_path / "plain")
    for path in (tmp_path / "plain").glob("w_*"):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    held = {one.candidate.id for one in run.taught if one.split == "test"}
    assert {one["example-id"].rpartition("-")[0] for one in examples(tmp_path / "two", "test")} <= held


def test_the_conversations_before_the_cut_do_not_tell_the_answers_of_the_first_kind(tmp_path: Path) -> None:
    run = made(1, tmp_path)
    in_other_words(run)
    write(run, tmp_path / "out", subtask=3, tests=1, cuts="all")
    dialogs = (tmp_path / "out" / "w_dialogs_subtask_3.json").read_text()
    for _, answer in truth(tmp_path / "out").values():
        assert f'"{answer}"' not in dialogs


@pytest.mark.parametrize("share", ["none", "alone", "stale"])
def test_a_run_without_paraphrases_says_what_to_do(share: str, tmp_path: Path) -> None:
    run = made(2, tmp_path)
    if share == "alone":  # one paraphrase a conversation changes no context
        one = run.taught[0].candidate
        at = next(n for n, turn in enumerate(one.turns) if turn.role == "Tutor")
        line = {"id": one.id, "turn": at, "role": "Tutor", "writer": "x", "texts": ["other"], "text_sha256": _sha(one.turns[at].text)}  # fmt: skip
        run.rundir.locate_written_texts("paraphrases").write_text(json.dumps(line) + "\n", encoding="utf-8")
    if share == "stale":
        in_other_words(run)
        path = run.rundir.locate_written_texts("paraphrases")
        path.write_text(path.read_text(encoding="utf-8").replace('"text_sha256": "', '"text_sha256": "0'))
    with pytest.raises(
        ShortError, match=r"--tests 1 needs .* `edgen annotate .* --write paraphrases --after 0`"
    ):
        write(run, tmp_path / "out", tests=1)
    assert not (tmp_path / "out").exists()


def test_advising_has_no_second_sub_task_and_there_are_two_kinds(tmp_path: Path) -> None:
    run = made(0, tmp_path)
    with pytest.raises(UsageError, match="--tests applies only to --subtask 1 or 3 or 4 or 5"):
        write(run, tmp_path / "out", subtask=2, tests=1)
    with pytest.raises(UsageError, match="--tests 3: expected one of 1, 2"):
        write(run, tmp_path / "out", tests=3)


def test_a_generated_run_has_both_kinds(tmp_path: Path) -> None:
    run = edgen.generate(
        "jobs/course_advising.yaml", conversations=40, output=tmp_path / "run", progress=False, selfplay={"max_turns": 8}
    )  # fmt: skip
    edgen.candidates(run, "paraphrases", count=2, after=0, progress=False)
    for kind in (1, 2):
        out = tmp_path / str(kind)
        run.export("dstc7", out, prefix="w", candidates=SIZE, tests=kind, speakers="roles")
        found = examples(out, "test")
        assert found
        assert all(
            one["example-id"].rpartition("-")[0].endswith("-paraphrased") == (kind == 1) for one in found
        )
        assert all(one["profile"]["Courses"]["Suggested"] for one in found)
        card = (out / "README.md").read_text()
        assert ("tests of the first kind" in card) == (kind == 1)
        edgen.baseline(out / "w_test_subtask_1.json", tmp_path / f"{kind}.json", by="tfidf")
        score = edgen.score(out / "w_responses_subtask_1.tsv", tmp_path / f"{kind}.json", candidates=SIZE)
        assert score.sound


def test_what_is_right_in_other_words_is_right_too(tmp_path: Path) -> None:
    """Alternatives of a turn, and paraphrases kept for training, are not used as wrong candidates."""
    run = made(3, tmp_path)
    in_other_words(run, 4)
    write(run, tmp_path / "out", tests=1, cuts="all", candidates=30)
    turns = {
        f"{one.candidate.id}-{at + 1}": turn
        for one in run.taught
        for at, turn in enumerate(one.candidate.turns)
    }
    for one in examples(tmp_path / "out", "test"):
        name = one["example-id"].replace("-paraphrased", "")
        turn: Turn = turns[name]
        pool = [c["utterance"] for c in one["options-for-next"]]
        assert not any(are_alike(text, other.text) for text in pool for other in (turn, *turn.alternatives))
