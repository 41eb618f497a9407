"""The intent paper's own, unchanged program and edgen compute the same features of the export's utterances.

prdwb/UserIntentPrediction is no package: `git clone https://github.com/prdwb/UserIntentPrediction`, `pip
install nltk pymysql`, then `PYTHONPATH=UserIntentPrediction/features python -m pytest
tests/rl/apart/test_userintentprediction.py`. NLTK's and the paper's word lists are data of their own; edgen's
lists replace them here. VADER's three scores have no counterpart.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import edgen
from edgen.domains.retrieval.export.intent_features import FEATURES, FUNCTION_WORDS
from edgen.domains.retrieval.export.sentiment import NEGATIVE, POSITIVE
from tests.layers import put_layer

LABELS = ("Original Question", "Potential Answer", "Further Details")


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder like NLTK's with edgen's function words, and the lists of opinion words."""
    import nltk

    folder = tmp_path_factory.mktemp("lists")
    (folder / "corpora" / "stopwords").mkdir(parents=True)
    for path, words in (
        ("corpora/stopwords/english", FUNCTION_WORDS),
        ("positive", POSITIVE),
        ("negative", NEGATIVE),
    ):
        (folder / path).write_text("\n".join(sorted(words)) + "\n", encoding="utf-8")
    nltk.data.path.insert(0, str(folder))
    return folder


@pytest.mark.parametrize("job", ["tech_support", "course_advising", "quickstart"])
def test_its_program_finds_the_same(job: str, lists: Path, tmp_path: Path) -> None:
    from compute_tf_idf_file import compute_idf
    from data_helper import clean_str, load_sentiment_lexicon, tokenizer
    from features import content_features, sentiment_features
    from features.cosine_similarity import cosine_similarity
    from features.structural_features import post_length

    run = edgen.generate(f"jobs/{job}.yaml", conversations=60, output=tmp_path / "run", progress=False)
    put_layer(run.folder, "intents", lambda _, turn: [LABELS[(turn or 0) % 3]])
    edgen.open(run.folder).export("intent-prediction", tmp_path / "set", layer="intents", features="all")
    texts = [clean_str(turn.text) for one in run.conversations() for turn in one.turns]
    ids = {word: number for number, word in enumerate({word for text in texts for word in tokenizer(text)})}
    rare, _ = compute_idf(
        [[ids[word] for word in tokenizer(text)] for text in texts], ids, {n: w for w, n in ids.items()}
    )
    good, bad = load_sentiment_lexicon(str(lists / "positive"), str(lists / "negative"))
    seen = stems = 0
    for split in ("train", "test"):
        said, told = (
            [part.splitlines() for part in (tmp_path / "set" / f"{split}{kind}.tsv").read_text(encoding="utf-8").split("\n\n")]
            for kind in ("", "_features")
        )  # fmt: skip
        for dialog, values in zip(said, told, strict=True):
            plain = [clean_str(line.split("\t")[1]) for line in dialog]
            _, first, whole = cosine_similarity("", plain, rare)
            lengths = post_length(plain)
            theirs = {
                "initial_similarity": [f"{x:.4f}" for x in first],
                "dialog_similarity": [f"{x:.4f}" for x in whole],
                "question_mark": content_features.question_mark(plain),
                "duplicate": content_features.duplicate(plain),
                "length": lengths[0],
                "unique_length": lengths[1],
                "thank": sentiment_features.thank(plain),
                "exclamation_mark": sentiment_features.exclamation_mark(plain),
                "feedback": sentiment_features.ve_feedback(plain),
            }
            theirs |= dict(
                zip(
                    ("how", "what", "why", "who", "where", "when"),
                    zip(*content_features.W5H1(plain), strict=True),
                    strict=True,
                )
            )
            theirs |= dict(
                zip(
                    ("positive_words", "negative_words"),
                    zip(*sentiment_features.lexicon(plain, good, bad), strict=True),
                    strict=True,
                )
            )
            ours = [dict(zip(FEATURES, line.split("\t")[1].split(" "), strict=True)) for line in values]
            for place, one in enumerate(ours):
                seen += 1
                stems += int(one["unique_stemmed_length"]) == lengths[2][place]
                for name, column in theirs.items():
                    assert one[name] == str(column[place]), (name, plain[place])
    assert seen == len(texts)
    assert stems / seen > 0.98  # NLTK's stemmer is Porter's with extensions
