"""People rank the candidates of a file: `baseline --method model` with a backend that asks people."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.domains.retrieval.test_reading import UBUNTU, example
from tests.web.asked_about_files import JOB, begin, invited, text_field
from tests.web.serving import serving

pytestmark = pytest.mark.integration


def test_people_rank_candidates(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB, "utf-8")
    (tmp_path / "ubuntu_test_subtask_1.json").write_text(json.dumps([example(1, *UBUNTU)]), "utf-8")
    out = tmp_path / "ranks.json"
    command = ("baseline", tmp_path / "ubuntu_test_subtask_1.json", "-o", out, "--method", "model")
    making = begin(*command, "--backend", tmp_path / "job.yaml")
    try:
        desk = tmp_path / "ranks.json.people"
        while not (desk / "people" / "waiting.db").exists():
            assert making.poll() is None, making.communicate()
            time.sleep(0.1)
        with serving(desk, folder=tmp_path) as link:
            ann = invited(link, "ann")
            assert ann.until("answer") == "answer"
            field = text_field(ann.page)
            count = len(example(1, *UBUNTU)["options-for-next"])
            order = [*range(count, 0, -1)]
            ann.browser.post("/play/answer", [*ann.form().items(), (field, "\n".join(map(str, order)))])
        assert making.wait(60) == 0, making.communicate()
    finally:
        making.terminate()
        making.communicate(timeout=60)
    assert out.exists()
    names = [one["candidate-id"] for one in example(1, *UBUNTU)["options-for-next"]]
    (ranked,) = json.loads(out.read_text("utf-8"))
    ids = [one["candidate-id"] for one in ranked["candidate-ranking"]]
    assert ids == names[::-1]
