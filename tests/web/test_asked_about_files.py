"""People answer requests about a file without a run: new values of a space."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgen.space import load_space
from tests import ROOT
from tests.web.asked_about_files import asking, text_field

pytestmark = pytest.mark.integration


def test_people_write_new_values_of_a_space(tmp_path: Path) -> None:
    out = tmp_path / "more.yaml"
    command = ("space", "expand", "education_dialogue", "--dimension", "topic", "--count", 2, "-o", out)
    with asking(tmp_path, out, *command) as (ann, said):
        texts = (text_field(ann.page), "The tides\nHow bread rises")
        ann.page = ann.browser.post("/play/answer", [*ann.form().items(), texts])
    assert f"edgen web {out}.people" in said[1]
    added = {one.value for one in load_space(out)["topic"].entries} - {
        one.value for one in load_space(ROOT / "preference_space/education_dialogue.yaml")["topic"].entries
    }
    assert added == {"The tides", "How bread rises"}
