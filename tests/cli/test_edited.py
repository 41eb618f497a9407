"""The source that an edited template states: in its file, in lists, on cards and in reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgen.core import resources
from edgen.prompting.front_matter import digest_body, find_original_template, read_front
from tests.cli.command import Command


class TestEdited:
    """An edited text does not claim to be its source."""

    @staticmethod
    def edited(name: str, old: str = "", new: str = "") -> str:
        return resources.find("prompts", name).read_text().replace(old, new)

    @pytest.mark.parametrize("name", resources.list_shipped("prompts"))
    def test_a_copy_is_what_it_says_and_an_edited_one_says_what_it_was_made_from(self, name: str) -> None:
        text = self.edited(name)
        assert find_original_template(text) is None
        assert "Edited" not in (read_front(text, "x").source or "")
        for copy in (
            text.replace("\n", "\r\n"),
            text + "\n",
            text.replace("\n---\n#}", "\nnotes: mine\n---\n#}"),
        ):
            assert find_original_template(copy) is None
        changed = f"{text.rstrip()} Be brief."
        assert find_original_template(changed) == name
        front = read_front(changed, "x")
        assert front.source is not None
        assert front.source.startswith(f"Edited from {name}; its source: ")
        assert (front.version, front.notes) == (None, None)

    def test_neither_another_name_nor_a_text_all_ones_own_makes_the_claim_true(self) -> None:
        text = self.edited("education_dialogue", "name: Education Dialogue", "name: My own")
        assert find_original_template(text) is None
        assert find_original_template(text.replace("roughly 10-15 turns", "5 turns")) == "education_dialogue"
        head = text[: text.index("#}") + 2]
        assert find_original_template(f"{head}\nTeach {{{{ topic }}}}.") == "education_dialogue"

    def test_a_text_of_ones_own_claims_nothing_of_ours(self) -> None:
        assert (
            find_original_template("{#\n---\nname: Mine\nsource: Written for this project\n---\n#}\nTeach!")
            is None
        )
        assert find_original_template("Teach!") is None

    def test_a_text_may_state_its_own_digest(self) -> None:
        body = "Teach {{ topic }}."
        head = "{#\n---\nsource: A book\nversion: '2'\nsha256: " + digest_body(body) + "\n---\n#}\n"
        assert read_front(head + body, "x").source == "A book"
        front = read_front(head + body + " Now.", "x")
        assert (front.source, front.version) == ("Edited from another text; its source: A book", None)


def test_lists_cards_and_reports_say_that_it_was_edited(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("init", "mine").code == 0
    path = Path("mine/prompt.j2")
    as_shipped = command("prompts", "mine").out
    assert as_shipped.count("Edited from") == 0
    path.write_text(path.read_text().replace("Simulate a conversation", "Write a conversation"))
    listed = command("prompts", "mine").out
    assert listed.count("Edited from education_dialogue") == 1
    assert command("generate", "mine/job.yaml", "--set", "conversations=4", "-o", "run").code == 0
    assert command("export", "run", "--to", "trl-sft", "-o", "sft").code == 0
    assert "prompt (edited from education_dialogue)" in Path("sft/README.md").read_text()
    assert command("report", "run").code == 0
    assert "prompt (edited from education_dialogue)" in Path("run/report.html").read_text()
