"""Random rankings and rankings by shared words: computed by hand, and scored."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.core.errors import DataError, UsageError
from edgen.domains.retrieval.baseline import BASELINES, Frequencies, RankingExample
from edgen.domains.retrieval.score import RankingScore
from tests.domains.retrieval.submissions import truth_file
from tests.late import Late

bm25s = Late("bm25s")

WORDS = [f"w{number}" for number in range(300)]


def example(rng: random.Random, number: int, shared: int, candidates: int = 20) -> tuple[dict[str, Any], str]:
    """Return an example and its right answer's id; the answer shares `shared` words with the context."""
    said = rng.sample(WORDS, 8)
    texts = [" ".join(rng.choices(WORDS, k=8)) for _ in range(candidates - 1)]
    texts.append(" ".join([*said[:shared], *rng.choices(WORDS, k=8 - shared)]))
    options = [{"candidate-id": f"E{number}C{place}", "utterance": text} for place, text in enumerate(texts)]
    right = options[-1]["candidate-id"]
    rng.shuffle(options)
    messages = [{"speaker": "participant_1", "utterance": " ".join(said[:4])},
                {"speaker": "participant_2", "utterance": " ".join(said[4:]).upper()}]  # fmt: skip
    return {"example-id": number, "messages-so-far": messages, "options-for-next": options}, right


def written(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_shared_words_are_better_than_chance_and_the_scorer_takes_what_is_written(tmp_path: Path) -> None:
    rng = random.Random(4)
    made = [example(rng, number, 3) for number in range(150)]
    examples = written(tmp_path / "examples.json", [one for one, _ in made])
    truth = truth_file(tmp_path / "truth.tsv", {str(one["example-id"]): [right] for one, right in made})
    recall = {}
    for by in BASELINES:
        told = edgen.baseline(examples, tmp_path / f"{by}.json", by=by)
        assert (told.examples, told.by) == (150, by)
        found = edgen.score(truth, tmp_path / f"{by}.json", candidates=20)
        assert isinstance(found, RankingScore)
        assert (found.sound, found.findings) == (True, ())
        recall[by] = found.figures.recall[1]
    chance = recall["chance"]
    assert chance.low is not None
    assert chance.high is not None
    assert chance.low <= 1 / 20 <= chance.high
    assert min(recall["tfidf"].value, recall["bm25"].value) > 0.7
    first = (tmp_path / "chance.json").read_bytes()
    assert first.count(b"\n") == 152  # an example a line
    edgen.baseline(examples, tmp_path / "again.json", by="chance")
    assert (tmp_path / "again.json").read_bytes() == first
    edgen.baseline(examples, tmp_path / "other.json", by="chance", seed=1)
    assert (tmp_path / "other.json").read_bytes() != first


def test_scores_by_hand() -> None:
    said = Counter(["cats", "purr", "cats"])
    candidates = [
        Counter(["cats", "purr"]),
        Counter(["cats", "bark"]),
        Counter(["dogs", "bark", "bark", "bark"]),
        Counter(),
    ]
    frequencies = Frequencies()
    frequencies.see(RankingExample("1", (), [("1", " ".join(one.elements())) for one in candidates]))
    cats, purr, bark = math.log(4 / 2), math.log(4 / 1), math.log(4 / 2)
    query = (1 + math.log(2)) * cats, purr
    tfidf = BASELINES["tfidf"](said, candidates, frequencies)
    assert tfidf[0] == pytest.approx(
        (query[0] * cats + query[1] * purr) / math.hypot(*query) / math.hypot(cats, purr)
    )
    assert tfidf[1] == pytest.approx(query[0] * cats / math.hypot(*query) / math.hypot(cats, bark))
    assert tfidf[2:] == [0, 0]
    # 8 words in 4 candidates: the first two have the mean length
    idf = {"cats": math.log(1 + 2.5 / 2.5), "purr": math.log(1 + 3.5 / 1.5)}
    bm25 = BASELINES["bm25"](said, candidates, frequencies)
    assert bm25 == pytest.approx([(2 * idf["cats"] + idf["purr"]) / 2.2, 2 * idf["cats"] / 2.2, 0, 0])


def test_bm25_is_that_of_the_library() -> None:
    rng = random.Random(9)
    texts = [rng.choices(WORDS[:40], k=rng.randint(1, 12)) for _ in range(50)]
    index = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
    index.index(texts, show_progress=False)
    candidates = [Counter(text) for text in texts]
    frequencies = Frequencies()
    frequencies.see(RankingExample("1", (), [("1", " ".join(text)) for text in texts]))
    for _ in range(10):
        said = rng.choices(WORDS[:40], k=6)
        found = BASELINES["bm25"](Counter(said), candidates, frequencies)
        assert found == pytest.approx(index.get_scores(said).tolist(), abs=1e-5)


@pytest.mark.parametrize(
    ("examples", "words"),
    [
        ([], "it holds no examples"),
        ([3], "$[0]: expected an object"),
        ([{}], "it has no 'example-id'"),
        ([{"example-id": 1, "messages-so-far": []}], "it has no 'options-for-next'"),
        ([{"example-id": 1, "options-for-next": [{}]}], "it has no 'messages-so-far'"),
        ([{"example-id": 1, "messages-so-far": [], "options-for-next": [{"candidate-id": 1}]}], "expected an 'utterance'"),
        ([{"example-id": 1, "messages-so-far": [4], "options-for-next": [{"candidate-id": 1, "utterance": ""}]}], "expected an"),
    ],
)  # fmt: skip
def test_files_that_hold_no_examples(tmp_path: Path, examples: Any, words: str) -> None:
    with pytest.raises(DataError) as caught:
        edgen.baseline(written(tmp_path / "e", examples), tmp_path / "out.json")
    assert words in str(caught.value)
    assert not (tmp_path / "out.json").exists()


def test_a_baseline_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'bm25'"):
        edgen.baseline(tmp_path, tmp_path / "out.json", by="bm2")
