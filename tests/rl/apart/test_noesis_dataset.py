"""The data set class of DSTC7's own baseline takes the exports of sub-tasks 1, 3, 4 and 5.

The program is unchanged from its repository. IBM/dstc-noesis is no package: `git clone
https://github.com/IBM/dstc-noesis`, `pip install ijson numpy tqdm`, then `PYTHONPATH=dstc-noesis python -m
pytest tests/rl/apart/test_noesis_dataset.py`. It leaves out examples whose right answer is not among the
candidates, as in sub-task 4. It sorts candidates by their length, and its `sort` loses the place of the right
one where it moves more than once; so no test is about that place.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import edgen


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    folder = tmp_path_factory.mktemp("run")
    made = edgen.generate(
        "jobs/course_advising.yaml", conversations=200, output=folder / "run", progress=False
    )
    edgen.candidates(made, "paraphrases", progress=False)
    return made


@pytest.mark.parametrize("subtask", [1, 3, 4, 5])
def test_it_takes_every_example_that_has_its_answer(subtask: int, run: edgen.Run, tmp_path: Path) -> None:
    from noesis.dataset.dataset import Dataset

    run.export("dstc7", tmp_path / "set", subtask=subtask, prefix="w", cuts="all")
    for side in ("train", "dev"):
        path = tmp_path / "set" / f"w_{side}_subtask_{subtask}.json"
        examples = json.loads(path.read_text(encoding="utf-8"))
        right = [one["options-for-correct-answers"][0] for one in examples]
        loaded = Dataset.from_file(str(path))
        assert len(loaded) == sum(one["candidate-id"] != "NONE" for one in right)
        assert (len(loaded) < len(examples)) == (subtask == 4)
        words = loaded.vocab.itos
        told = sorted(
            sorted(" ".join(words[n] for n in option) for option in options)
            for (_, options), _ in loaded.data
        )
        assert told == sorted(
            sorted(c["utterance"] for c in one["options-for-next"])
            for one, true in zip(examples, right, strict=True)
            if true["candidate-id"] != "NONE"
        )
        contexts, responses, targets, *_ = next(loaded.make_batches(8))
        assert contexts.shape[0] == targets.shape[0] == 8
        assert responses.shape[:2] == (8, 100)
