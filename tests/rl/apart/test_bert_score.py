"""BERTScore with a useless model of random weights, made here: the computation is correct.

In an environment with edgen's extras analysis, bleu and bertscore (`pip install torch==2.13.0`, the build for
CPUs, and then `pip install -e '.[analysis,bleu,bertscore]'`): `python -m pytest
tests/rl/apart/test_bert_score.py`. No weights of a published model were ever loaded by edgen's authors.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from bert_score import BERTScorer
from transformers import BertConfig, BertModel, BertTokenizerFast

from edgen.core.errors import UsageError
from edgen.core.values import Scenario, Turn
from edgen.domains.tutoring.measures.best_of_others import reference_overlap
from edgen.domains.tutoring.measures.reference_overlap import MEASURE, VARIABLE
from edgen.evaluation.sample import Sample, Words

pytestmark = pytest.mark.integration

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "cat",
    "sat",
    "dog",
    "ran",
    "is",
    "it",
    "red",
    ".",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("bert")
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(WORDS), **size)).save_pretrained(folder)
    return str(folder)


def test_the_best_of_several_references_counts(model: str) -> None:
    found = reference_overlap([("the cat sat", ["it is red .", "the cat sat"], 0)], model)
    assert found.bertscore is not None
    assert found.bertscore.value == pytest.approx(1, abs=1e-5)
    assert model in found.scored_by[1]
    assert "_L2_" in found.scored_by[1], "the last layer"


def test_it_is_what_bert_score_says(model: str) -> None:
    responses, references = (
        ["the dog ran", "it is red ."],
        [["the cat sat", "it is ."], ["the dog .", "red ran"]],
    )
    scorer = BERTScorer(model_type=model, num_layers=2, device="cpu")
    best = [
        max(scorer.score([one], [other])[2].item() for other in others)
        for one, others in zip(responses, references, strict=True)
    ]
    scored = [
        (one, others, place) for place, (one, others) in enumerate(zip(responses, references, strict=True))
    ]
    found = reference_overlap(scored, model)
    assert found.bertscore is not None
    assert found.bertscore.value == pytest.approx(sum(best) / 2, abs=1e-5)


def test_the_measure_has_it_where_a_model_is_named(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    count = MEASURE.start(None)  # type: ignore[arg-type]
    turn = Turn("Tutor", "the cat sat", alternatives=(Turn("Tutor", "the dog ran"),))
    count.see(
        Sample(id="x", source="x", split=None, scenario=Scenario(0, {}), turns=(turn,), entries=1), Words()
    )
    without = count.result()
    assert without is not None
    assert without.bertscore is None
    monkeypatch.setenv(VARIABLE, model)
    found = count.result()
    assert found is not None
    assert any("best BERTScore F1" in line for line in MEASURE.lines(found))


def test_a_model_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"BERTScore: the model .* cannot be loaded"):
        reference_overlap([("a", ["b"], 0)], str(tmp_path / "none"))
