"""ParlAI's DSTC7Teacher on the export of sub-task 1, all three splits.

It needs Python 3.8, so it has an environment of its own: `python3.8 -m venv parlai`, `parlai/bin/pip install
torch==1.12.1 "numpy<1.24"`, `… --no-deps parlai==1.7.2`, `… requests tqdm iopath coloredlogs pyyaml scipy
pandas pillow`. With a clone of facebookresearch/ParlAI on the path, so that these tests are collected:
`PYTHONPATH=ParlAI PARLAI_PYTHON=parlai/bin/python python -m pytest tests/rl/apart/test_parlai.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import edgen

PYTHON = os.environ.get("PARLAI_PYTHON", "python3.8")
PROGRAM = """
import json, sys
from parlai.core.build_data import mark_done
from parlai.tasks.dstc7.agents import DSTC7Teacher
mark_done(sys.argv[1] + "/dstc7", version_string="2.0")  # or it would download its own data in their place
for split in ("train", "valid", "test"):
    teacher = DSTC7Teacher({"datatype": split, "datapath": sys.argv[1], "task": "dstc7"})
    for number in range(teacher.num_examples()):
        print(json.dumps([split, teacher.get(number)]))
"""


def test_its_teacher_tells_every_example_with_its_answer(tmp_path: Path) -> None:
    run = edgen.generate("jobs/quickstart.yaml", conversations=200, output=tmp_path / "run", progress=False)
    folder = tmp_path / "data" / "dstc7"
    run.export("dstc7", folder, prefix="ubuntu")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        [PYTHON, "-c", PROGRAM, str(tmp_path / "data")],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("[")]
    table = (folder / "ubuntu_responses_subtask_1.tsv").read_text(encoding="utf-8").splitlines()
    hidden = dict(line.split("\t")[::2] for line in table)
    for split, side in (("train", "train"), ("valid", "dev"), ("test", "test")):
        path = folder / f"ubuntu_{side}_subtask_1.json"
        examples = json.loads(path.read_text(encoding="utf-8"))
        gave = [value for name, value in told if name == split]
        assert len(gave) == len(examples) > 0
        for example, value in zip(examples, gave, strict=True):
            before = [
                f"{m['speaker'].replace('_', ' ')}: {m['utterance']}\n" for m in example["messages-so-far"]
            ]
            assert value["text"] == "".join(before)
            assert {*value["label_candidates"]} == {c["utterance"] for c in example["options-for-next"]}
            assert len(value["label_candidates"]) == 100
            right = (
                hidden[example["example-id"]]
                if side == "test"
                else example["options-for-correct-answers"][0]["utterance"]
            )
            assert value["labels" if side == "train" else "eval_labels"] == [right]
