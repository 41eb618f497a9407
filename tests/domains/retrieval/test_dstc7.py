"""Exports in DSTC7's layout."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import edgen
from edgen.core.errors import ShortError, UsageError
from edgen.core.values import Turn
from edgen.domains.retrieval.negatives import are_alike
from edgen.domains.retrieval.score import RankingScore
from edgen.export.write import Exported, export
from edgen.families.dialogue import DIALOGUE
from edgen.store.run_folder import RunFolder
from edgen.store.run_parts import AcceptedConversation
from tests.cli.command import Command
from tests.dose import dose
from tests.export.runs import FORMATS, MemoryRun
from tests.export.test_spaces import SPACE, accepted

WORDS = ["rope", "knot", "loop", "end", "pull", "left", "right", "over", "under", "tight", "loose"]
SIZE = 12  # candidates of an example


class Placed(MemoryRun):
    """A run with a folder, for files next to it."""

    folder: Path

    @property
    def rundir(self) -> RunFolder:
        return RunFolder(self.folder)


def made(seed: int, folder: Path, count: int = 60) -> Placed:
    """Make conversations of three roles; some share a beginning, and some turns have alternatives."""
    rng = random.Random(seed)
    taught: list[AcceptedConversation] = []
    for index in range(count):
        said = [
            (rng.choice(("Learner", "Parent", "Tutor", "Tutor")), " ".join(rng.choices(WORDS, k=rng.randint(1, 7))))
            for _ in range(rng.randint(3, 12))
        ]  # fmt: skip
        if taught and rng.random() < 0.5:
            before = [(turn.role, turn.text) for turn in taught[-1].candidate.turns]
            at = rng.randrange(len(before))
            said = before[:at] + said[at:]
        one = accepted(index, 0, tuple(said if len(said) > 2 else before))
        turns = tuple(
            Turn(turn.role, turn.text, alternatives=(Turn(turn.role, " ".join(rng.choices(WORDS, k=3))),))
            if rng.random() < 0.2 else turn
            for turn in one.candidate.turns
        )  # fmt: skip
        side = "test" if index % 5 == 3 else "train"
        taught.append(replace(one, candidate=replace(one.candidate, turns=turns), split=side))
    run = Placed(taught=taught, name="w", space=SPACE, family=DIALOGUE)
    run.folder = folder / "run"
    (run.folder / "candidates").mkdir(parents=True, exist_ok=True)
    lines = [
        {"id": one.candidate.id, "turn": at, "role": "Tutor", "writer": "x", "text_sha256": _sha(turn.text),
         "texts": [turn.text, *(" ".join(rng.choices(WORDS, k=5)) for _ in range(8))]}
        for one in taught
        for at, turn in enumerate(one.candidate.turns)
        if turn.role == "Tutor"
    ]  # fmt: skip
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.folder / "candidates" / "wrong.jsonl").write_text(text, encoding="utf-8")
    return run


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write_paraphrases(run: Placed) -> set[str]:
    """Write a paraphrase of every tutor's turn, similar to no other text."""
    lines = [
        {"id": one.candidate.id, "turn": at, "role": "Tutor", "writer": "x", "text_sha256": _sha(turn.text),
         "texts": [f"in other words {one.candidate.id} {at} so to say"]}
        for one in run.taught
        for at, turn in enumerate(one.candidate.turns)
        if turn.role == "Tutor"
    ]  # fmt: skip
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.folder / "candidates" / "paraphrases.jsonl").write_text(text, encoding="utf-8")
    return {str(text) for line in lines for text in line["texts"]}


def write(run: MemoryRun, target: Path, **own: Any) -> Exported:
    size = {} if own.get("subtask") == 2 else {"candidates": SIZE}
    options = FORMATS["dstc7"].read({"agent": "Tutor", **size, "prefix": "w", **own})
    return export(run, FORMATS["dstc7"], target, options)  # type: ignore[arg-type]


def examples(folder: Path, *sides: str) -> list[dict[str, Any]]:
    return [
        one
        for side in sides or ("train", "dev", "test")
        for path in folder.glob(f"w_{side}_subtask_*.json")
        for one in json.loads(path.read_text(encoding="utf-8"))
    ]


def truth(folder: Path) -> dict[str, tuple[list[str], str]]:
    (path,) = folder.glob("w_responses_subtask_*.tsv")
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return {example: (ids.split(","), text) for example, ids, text in lines}


def after(run: MemoryRun) -> dict[tuple[str, ...], set[str]]:
    """Return the right responses to each context: every turn that follows it anywhere, and the turn's
    alternatives."""
    found: dict[tuple[str, ...], set[str]] = {}
    for one in run.taught:
        turns = one.candidate.turns
        for at, turn in enumerate(turns):
            if at >= 3 and turn.role == "Tutor":
                context = tuple(before.text for before in turns[:at])
                found.setdefault(context, set()).update(t.text for t in (turn, *turn.alternatives))
    return found


@pytest.mark.long
@pytest.mark.parametrize("negatives", ["random", "same-topic", "bm25", "written"])
@pytest.mark.parametrize("seed", range(dose(1, 2)))
@pytest.mark.parametrize("subtask", [1, 4])
def test_no_wrong_candidate_is_right(seed: int, negatives: str, subtask: int, tmp_path: Path) -> None:
    run = made(seed, tmp_path)
    exported = write(run, tmp_path / "out", negatives=negatives, subtask=subtask, cuts="all")
    found, right = examples(tmp_path / "out"), after(run)
    assert len(found) == sum(exported.rows["default"].values()) > 50
    assert len({one["example-id"] for one in found}) == len(found)
    assert {one["data-split"] for one in found} == {"train", "dev", "test"}
    hidden = truth(tmp_path / "out")
    names: dict[str, str] = {}
    nowhere = 0
    for one in found:
        answers = right[tuple(m["utterance"] for m in one["messages-so-far"])]
        ids = [c["candidate-id"] for c in one["options-for-next"]]
        texts = {c["candidate-id"]: c["utterance"] for c in one["options-for-next"]}
        assert len(texts) == len(ids) == len({*texts.values()}) == SIZE
        names |= texts
        if one["data-split"] == "test":
            assert "options-for-correct-answers" not in one
            (true,), text = hidden[one["example-id"]]
        else:
            (answer,) = one["options-for-correct-answers"]
            true, text = answer["candidate-id"], answer["utterance"]
        if true == "NONE":
            nowhere += 1
            assert text == "NONE"
        else:
            assert texts.pop(true) == text
            assert text in answers
        assert not any(are_alike(wrong, answer) for wrong in texts.values() for answer in answers)
        assert one["scenario"] == subtask
    assert hidden.keys() == {one["example-id"] for one in found if one["data-split"] == "test"}
    assert len({*names.values()}) == len(names)
    assert all(len(name) == 12 and name == name.upper() for name in names)
    share = nowhere / len(found)
    assert share == 0 if subtask == 1 else 0.05 < share < 0.4


def pool_of(folder: Path) -> dict[str, str]:
    lines = (folder / "w_candidate_pool_subtask_2.tsv").read_text(encoding="utf-8").splitlines()
    pool = dict(line.split("\t") for line in lines)
    assert len(pool) == len(lines) == len({*pool.values()})
    assert list(pool) == sorted(pool)
    return pool


def test_one_pool_for_all_and_what_is_right_in_it(tmp_path: Path) -> None:
    run = made(0, tmp_path)
    said = {t.text for one in run.taught for t in one.candidate.turns if t.role == "Tutor"}
    reworded = write_paraphrases(run)
    for size, paraphrased in ((120, False), (300, True)):
        folder = tmp_path / str(size)
        exported = write(run, folder, subtask=2, cuts="all", pool=size)
        pool, found, right = pool_of(folder), examples(folder), after(run)
        assert len(pool) == size
        assert exported.rows["pool"] == {"train": size, "test": 0}
        assert bool({*pool.values()} & reworded) == paraphrased
        assert {*pool.values()} - reworded <= said
        hidden = truth(folder)
        true = {name: text for name, (_, text) in hidden.items()}
        answers = {name: ids for name, (ids, _) in hidden.items()}
        for one in found:
            assert "options-for-next" not in one
            if (given := one.get("options-for-correct-answers")) is not None:
                answers[one["example-id"]] = [c["candidate-id"] for c in given]
                true[one["example-id"]] = given[0]["utterance"]
        for one in found:
            ids = answers[one["example-id"]]
            context = right[tuple(m["utterance"] for m in one["messages-so-far"])]
            assert pool[ids[0]] == true[one["example-id"]] in context
            alike = {
                name for name, text in pool.items() if any(are_alike(text, answer) for answer in context)
            }
            assert {name for name in ids if pool[name] not in reworded} == alike
            assert paraphrased or {*ids} == alike
            for name in ids:
                if pool[name] in reworded:
                    _, _, _, conversation, at, *_ = pool[name].split()
                    (turns,) = (c.candidate.turns for c in run.taught if c.candidate.id == conversation)
                    assert turns[int(at)].text in context


def test_a_pool_that_stays_small_is_not_padded_but_said(tmp_path: Path) -> None:
    exported = write(made(0, tmp_path), tmp_path / "out", subtask=2)
    pool = pool_of(tmp_path / "out")
    assert exported.remarks[0].startswith(f"The pool has {len(pool)} texts: ")
    assert "smaller than the 120,000 of --pool. To fill it, name other runs" in exported.remarks[1]
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert all(remark in card for remark in exported.remarks)
    with pytest.raises(UsageError, match=r"--pool 2: the right answers alone are \d+; take --pool"):
        write(made(0, tmp_path), tmp_path / "none", subtask=2, pool=2)
    with pytest.raises(ShortError, match=r"a ranking has 100 candidates of the pool, and the pool has \d+; "):
        write(made(0, tmp_path, 12), tmp_path / "none", subtask=2)


def test_score_takes_rankings_of_the_pool(tmp_path: Path) -> None:
    write(made(0, tmp_path), tmp_path / "out", subtask=2, cuts="all")
    pool, answers = pool_of(tmp_path / "out"), tmp_path / "out" / "w_responses_subtask_2.tsv"
    rankings = [
        {"example-id": name, "candidate-ranking": [
            {"candidate-id": one, "confidence": 0.5}
            for one in [*ids, *(other for other in pool if other not in ids)][:100]
        ]}
        for name, (ids, _) in truth(tmp_path / "out").items()
    ]  # fmt: skip
    best = tmp_path / "best.json"
    best.write_text(json.dumps(rankings), encoding="utf-8")
    offered = tmp_path / "out" / "w_candidate_pool_subtask_2.tsv"
    score = edgen.score(answers, best, examples=offered)
    assert isinstance(score, RankingScore)
    assert score.sound
    assert score.figures.recall[1].value == score.figures.map.value == 1
    offered.write_text("X\tsomething else\n", encoding="utf-8")
    score = edgen.score(answers, best, examples=offered)
    assert {one.kind for one in score.findings} == {"other_candidate"}


def test_other_runs_make_a_pool_larger(tmp_path: Path) -> None:
    for seed in (1, 2):
        edgen.generate(
            "jobs/quickstart.yaml", conversations=60, seed=seed, output=tmp_path / f"{seed}", progress=False
        )
    run = edgen.open(tmp_path / "1")
    run.export("dstc7", tmp_path / "alone", prefix="w", subtask=2, pool=2000)
    exported = run.export(
        "dstc7", tmp_path / "more", prefix="w", subtask=2, pool=2000, pool_from=[tmp_path / "2"]
    )
    alone, more = pool_of(tmp_path / "alone"), pool_of(tmp_path / "more")
    assert alone.items() < more.items()
    assert f"{len(more) - len(alone)} turns of agents in other runs" in exported.remarks[0]
    assert {one["example-id"]: one for one in examples(tmp_path / "alone")}.keys() == {
        one["example-id"] for one in examples(tmp_path / "more")
    }


def test_the_same_run_gives_the_same_bytes_and_a_text_one_id_everywhere(tmp_path: Path) -> None:
    run = made(1, tmp_path)
    write(run, tmp_path / "one", cuts="all")
    write(run, tmp_path / "two", cuts="all")
    for name in ("one", "two"):
        write(run, tmp_path / name / "pool", subtask=2, pool=120)
    write(run, tmp_path / "other", negatives="bm25")
    for path in (tmp_path / "one").rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()
    names = [
        {c["utterance"]: c["candidate-id"] for e in examples(tmp_path / which) for c in e["options-for-next"]}
        for which in ("one", "other")
    ]
    shared = names[0].keys() & names[1].keys()
    assert len(shared) > 50
    assert all(names[0][text] == names[1][text] for text in shared)


def test_sides_are_apart_and_train_holds_nothing_of_others(tmp_path: Path) -> None:
    run = made(0, tmp_path)
    exported = write(run, tmp_path / "out", cuts="all", dev=0.3)
    of = {
        side: {one["example-id"].rsplit("-", 1)[0] for one in examples(tmp_path / "out", side)}
        for side in ("train", "dev", "test")
    }
    assert of["test"] <= {one.candidate.id for one in run.taught if one.split == "test"}
    assert not of["train"] & of["dev"]
    assert 8 <= len(of["dev"]) <= 20
    said = {t.text for one in run.taught if one.candidate.id in of["train"] for t in one.candidate.turns}
    assert {c["utterance"] for e in examples(tmp_path / "out", "train") for c in e["options-for-next"]} <= {
        t.text for one in run.taught if one.split == "train" and one.candidate.id not in of["dev"]
        for t in one.candidate.turns
    }  # fmt: skip
    assert said
    assert exported.rows["default"]["train"] == len(examples(tmp_path / "out", "train", "dev"))
    write(run, tmp_path / "whole", dev=0)
    assert not examples(tmp_path / "whole", "dev")


def test_one_cut_a_conversation_or_all_and_both_ways_to_name_speakers(tmp_path: Path) -> None:
    run = made(0, tmp_path)
    write(run, tmp_path / "one")
    write(run, tmp_path / "all", cuts="all", speakers="roles")
    one, all_ = examples(tmp_path / "one"), examples(tmp_path / "all")
    told = [example["example-id"].rsplit("-", 1)[0] for example in one]
    assert len({*told}) == len(told) < len(all_)
    by_id = {taught.candidate.id: taught.candidate.turns for taught in run.taught}
    for example in (*one, *all_):
        name, number = example["example-id"].rsplit("-", 1)
        before = by_id[name][: int(number) - 1]
        assert len(before) >= 3
        speakers = [m["speaker"] for m in example["messages-so-far"]]
        if example in one:
            assert speakers == [f"participant_{1 + (turn.role == 'Tutor')}" for turn in before]
        else:
            assert speakers == [turn.role.lower() for turn in before]


def test_what_is_not_enough_is_topped_up_and_said(tmp_path: Path) -> None:
    run = made(0, tmp_path)
    exported = write(run, tmp_path / "out", negatives="written")
    assert "have fewer candidates by --negatives written than they need" in exported.remarks[0]
    assert exported.remarks[0] in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    for one in examples(tmp_path / "out", "train"):
        assert len(one["options-for-next"]) == SIZE
    (run.folder / "candidates" / "wrong.jsonl").unlink()
    with pytest.raises(UsageError, match=r"wrong.jsonl: there is no such file; `edgen annotate"):
        write(run, tmp_path / "none", negatives="written")


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"subtask": 9}, "--subtask 9: expected one of 1"),
        ({"subtask": 4, "none": 2}, "--none 2: expected a number, 0 or more, 1 at most"),
        ({"none": 0.5}, "--none applies only to --subtask 4"),
        ({"pool_from": ["x"]}, "--pool-from applies only to --subtask 2"),
        ({"topic": "mood"}, "--topic applies only to --negatives same-topic"),
        ({"topic": "tide", "negatives": "same-topic"}, "--topic tide: the space .* has no such dimension"),
        ({"candidates": "many"}, "--candidates many: expected a whole number"),
        ({"dev": 1}, "--dev 1: expected a number, 0 or more, below 1"),
        ({"prefix": "../x"}, "a file's name begins with it"),
        ({"cut": "all"}, r"dstc7 has no option --cut \(did you mean 'cuts'"),
    ],
)
def test_what_cannot_be_chosen_is_said(own: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        write(made(0, tmp_path, 5), tmp_path / "out", **own)
    assert not (tmp_path / "out").exists()


def test_own_options_count_for_their_format_alone() -> None:
    with pytest.raises(UsageError, match=r"hf does not take --subtask; dstc7 does. Leave --subtask out."):
        FORMATS["hf"].read({"subtask": 1})


def test_the_command_says_what_cannot_be_and_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = Command(capsys)
    for words, said in (
        (("--to", "dstc7", "--subtask", "9"), "--subtask 9: expected one of 1, 2"),
        (
            ("--to", "hf", "--pool-from", "x", "--pool-from", "y"),
            "hf does not take --pool-from; dstc7 does.",
        ),
        (("--subtask", "1"), "--to is missing"),
    ):
        ended = command("export", tmp_path / "run", "-o", tmp_path / "out", *words)
        assert (ended.code, ended.out) == (2, "")
        assert said in ended.err


def test_a_run_that_is_too_small_for_a_pool_says_how_many_more(tmp_path: Path) -> None:
    said = (("Learner", "Where?"), ("Tutor", "Left."), ("Learner", "And now?"), ("Tutor", "Pull it."))
    run = MemoryRun(taught=[accepted(0, 0, said)], name="w", space=SPACE, family=DIALOGUE)
    with pytest.raises(ShortError, match=r"and there are 2; 10 more are needed.*--candidates 2"):
        write(run, tmp_path / "out")
    with pytest.raises(ShortError, match=r"nothing of the run.*no_target 1"):
        write(
            MemoryRun(taught=[accepted(0, 0, said[:1])], name="w", space=SPACE, family=DIALOGUE),
            tmp_path / "out",
        )


def test_baselines_rank_it_and_score_scores_them(tmp_path: Path) -> None:
    run = edgen.generate("jobs/quickstart.yaml", conversations=150, output=tmp_path / "run", progress=False)
    run.export("dstc7", tmp_path / "out", prefix="w", cuts="all", candidates=50, subtask="1")
    test, answers = tmp_path / "out" / "w_test_subtask_1.json", tmp_path / "out" / "w_responses_subtask_1.tsv"
    first = {}
    for by in ("chance", "tfidf"):
        edgen.baseline(test, tmp_path / f"{by}.json", by=by)
        score = edgen.score(answers, tmp_path / f"{by}.json", candidates=50, examples=test)
        assert isinstance(score, RankingScore)
        assert score.sound
        first[by] = score.figures.recall[10].value
    assert first["chance"] == pytest.approx(0.2, abs=0.12)
    assert first["tfidf"] > first["chance"]
