"""NeuralResponseRanking's own, unchanged preparation (Python 2.7) on the export.

yangliuy/NeuralResponseRanking is no package: `git clone https://github.com/yangliuy/NeuralResponseRanking`,
`pip install numpy nltk jieba tqdm` for Python 2.7, then `PYTHONPATH=NeuralResponseRanking PYTHON2=python2.7
python -m pytest tests/rl/apart/test_neuralresponseranking.py`. The steps after the preparation need nltk's
data; they may fail.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import edgen

_FOUND = importlib.util.find_spec("matchzoo")
PROGRAM = Path(next(iter(_FOUND.submodule_search_locations or ()))) if _FOUND is not None else Path()
PYTHON = os.environ.get("PYTHON2", "python2.7")


def test_its_preparation_takes_every_line_and_filters_none(tmp_path: Path) -> None:
    run = edgen.generate(
        "jobs/course_advising.yaml", conversations=300, output=tmp_path / "run", progress=False
    )
    run.export("msdialog-responserank", tmp_path / "set")
    shutil.copytree(PROGRAM, tmp_path / "matchzoo")
    place = tmp_path / "data" / "ms_v2" / "ModelInput"
    made = place / "dmn_model_input"
    made.mkdir(parents=True)
    parts = {}
    for name in ("train", "valid", "test"):
        shutil.copy(tmp_path / "set" / f"{name}.txt", place)
        parts[name] = (place / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        assert parts[name]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PYTHONPATH"] = os.environ.get("PYTHONPATH2", "")
    ended = subprocess.run(
        [PYTHON, "preprocess_dmn.py", "ms_v2"], cwd=tmp_path / "matchzoo" / "conqa", env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "preparation finished" in ended.stdout, ended.stderr
    for name, part in parts.items():
        relations = (made / f"relation_{name}.txt").read_text()
        assert len(relations.splitlines()) == len(part)
        assert len({line.split()[1] for line in relations.splitlines()}) == len(part) // 10
        assert (made / f"relation_{name}.txt.fd").read_text() == relations
    corpus = (made / "corpus.txt").read_text(encoding="utf-8").splitlines()
    queries = [line.split("\t")[1:] for line in corpus if line.startswith("Q")]
    assert {len(one) for one in queries} <= {*range(2, 12)}
