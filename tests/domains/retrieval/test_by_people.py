"""People rank the candidates of a file: `baseline --method model` with a backend that asks people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.domains.retrieval.test_reading import UBUNTU, example
from tests.web.asked_about_files import asking, text_field

pytestmark = pytest.mark.integration


def test_people_rank_candidates(tmp_path: Path) -> None:
    asked = tmp_path / "ubuntu_test_subtask_1.json"
    asked.write_text(json.dumps([example(1, *UBUNTU)]), "utf-8")
    out = tmp_path / "ranks.json"
    names = [one["candidate-id"] for one in example(1, *UBUNTU)["options-for-next"]]
    with asking(tmp_path, out, "baseline", asked, "-o", out, "--method", "model") as (ann, _):
        order = "\n".join(map(str, range(len(names), 0, -1)))
        ann.browser.post("/play/answer", [*ann.form().items(), (text_field(ann.page), order)])
    (ranked,) = json.loads(out.read_text("utf-8"))
    assert [one["candidate-id"] for one in ranked["candidate-ranking"]] == names[::-1]
