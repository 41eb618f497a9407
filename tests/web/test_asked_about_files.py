"""People answer what is asked about a file and no run: new values of a space."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from edgen.space import load_space
from tests import ROOT
from tests.web.asked_about_files import JOB, begin, invited, text_field
from tests.web.serving import serving

pytestmark = pytest.mark.integration


def test_people_write_new_values_of_a_space(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB, "utf-8")
    out = tmp_path / "more.yaml"
    command = ("space", "expand", "education_dialogue", "--dimension", "topic", "--count", 2)
    making = begin(*command, "--backend", tmp_path / "job.yaml", "-o", out)
    try:
        desk = tmp_path / "more.yaml.people"
        while not (desk / "people" / "waiting.db").exists():
            assert making.poll() is None, making.communicate()
            time.sleep(0.1)
        with serving(desk, folder=tmp_path) as link:
            ann = invited(link, "ann")
            assert ann.until("answer") == "answer"
            ann.page = ann.browser.post(
                "/play/answer", [*ann.form().items(), (text_field(ann.page), "The tides\nHow bread rises")]
            )
        assert making.wait(60) == 0, making.communicate()
    finally:
        making.terminate()
        said = making.communicate(timeout=60)
    assert f"edgen web {desk}" in said[1]
    added = {one.value for one in load_space(out)["topic"].entries} - {
        one.value for one in load_space(ROOT / "preference_space/education_dialogue.yaml")["topic"].entries
    }
    assert added == {"The tides", "How bread rises"}
