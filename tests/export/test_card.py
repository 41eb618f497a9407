"""The text of an export's card."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from edgen.core.pair import Compare
from edgen.core.values import Turn
from edgen.domains.education.family import EDUCATION
from edgen.export.rows import REASONS
from edgen.export.write import export
from edgen.preferences.labels import UNLABELLED
from tests.export.folders import BAD, GOOD, RUN, head, write
from tests.export.runs import FORMATS, OF_EDUCATION, TABLES, MemoryRun, compared, lesson, turns

OF_PAIRS = ("trl-kto", "openrlhf", "llamafactory", "refuel", "trl-conversation", "mtpo")
BOTH = "A simulator wrote these conversations and had a part in their labels."
SIMULATED = (
    ("oracle", ("labels",), "A simulated judge gave the labels of these conversations"),
    ("probability", ("labels",), None),  # a simulated judge answered too, but gave no label
    ("oracle", (), None),
    ("oracle", ("conversations", "labels"), BOTH),
    ("probability", ("conversations",), BOTH),
    ("human", ("labels",), None),
    ("human", ("conversations",), "A simulator wrote these conversations."),
)


class TestCard:
    def _text(self, tmp_path: Path, name: str = "trl-dpo", run: MemoryRun = RUN, **how: Any) -> str:
        write(name, run, tmp_path / "out", **how)
        return (tmp_path / "out" / "README.md").read_text(encoding="utf-8")

    def test_counts_and_reasons(self, tmp_path: Path) -> None:
        text = self._text(tmp_path)
        assert "| default | 1 | 1 |" in text
        assert "| identical | 1 | both sides say the same |" in text

    def test_a_tag_of_both_family_and_format_is_there_once(self, tmp_path: Path) -> None:
        card = dataclasses.replace(FORMATS["csv"].card, tags=(*EDUCATION.tags, "tables"))
        format_ = dataclasses.replace(FORMATS["csv"], card=card)
        export(RUN, format_, tmp_path / "out", format_.read({}))  # type: ignore[arg-type]
        tags = head(tmp_path / "out")["tags"]
        assert {*EDUCATION.tags, "tables"} <= {*tags}
        assert len({*tags}) == len(tags)

    @pytest.mark.parametrize(
        ("name", "by", "parts", "banner"),
        [
            *(("trl-dpo", *case) for case in SIMULATED),
            # Formats differ here only in the evidence of their rows.
            *((name, *case) for name in OF_PAIRS for case in SIMULATED[:2]),
        ],
    )
    def test_says_what_a_simulator_made(
        self, name: str, by: str, parts: tuple[str, ...], banner: str | None, tmp_path: Path
    ) -> None:
        run = MemoryRun(pairs=[compared(0, GOOD, BAD, by=by, simulated=parts)], simulated=False)
        text = self._text(tmp_path, name, run)
        assert ("rehearsal" in text) == (banner is not None)
        assert banner is None or f"**{banner}" in text
        assert ("simulated" in head(tmp_path / "out")["tags"]) == (banner is not None)
        assert ("- simulated: `no`" in text) == (banner is None)

    def test_says_of_exported_pairs_only_what_a_simulator_made(self, tmp_path: Path) -> None:
        pairs = [
            compared(0, GOOD, BAD, simulated=()),
            compared(1, GOOD, GOOD, simulated=("labels",)),
            compared(2, GOOD, BAD, chosen=None, left_out="margin", simulated=("labels",)),
        ]
        assert "rehearsal" not in self._text(tmp_path, run=MemoryRun(pairs=pairs, simulated=False))

    @pytest.mark.parametrize("name", ["trl-sft", "trl-prompts", "ed"])
    def test_a_simulated_judge_does_not_mark_conversations(self, name: str, tmp_path: Path) -> None:
        pairs = [compared(0, GOOD, BAD, simulated=("labels",))]
        real = MemoryRun(taught=RUN.taught, pairs=pairs, simulated=False)
        assert "rehearsal" not in self._text(tmp_path / "real", name, real)
        assert "simulated" not in head(tmp_path / "real" / "out")["tags"]
        text = self._text(tmp_path / "played", name)
        assert "**A simulator wrote these conversations. They are for rehearsal" in text
        assert "- simulated: `conversations`" in text

    @pytest.mark.parametrize("name", ["trl-dpo", "trl-kto", "openrlhf"])
    def test_says_what_was_judged_of_a_turn(self, name: str, tmp_path: Path) -> None:
        pairs = {how: compared(0, GOOD, BAD, compare=how) for how in get_args(Compare)}  # type: ignore[arg-type]
        whole = self._text(tmp_path / "whole", name, MemoryRun(pairs=[pairs["conversation"]]))
        assert "The labels were given to whole conversations; a row holds the turn" in whole
        assert "compare=conversation`" in whole
        assert "single responses" not in whole
        single = self._text(tmp_path / "single", name, MemoryRun(pairs=[pairs["response"]]))
        assert "The judge compared single responses" in single
        assert "compare=response`" in single
        assert "whole conversations;" not in single

    @pytest.mark.parametrize("name", ["trl-conversation", "mtpo", "refuel"])
    def test_says_where_whole_conversations_have_labels_of_responses(self, name: str, tmp_path: Path) -> None:
        single = compared(0, GOOD, BAD, compare="response")
        whole = compared(1, GOOD, BAD)
        text = self._text(tmp_path / "whole", name, MemoryRun(pairs=[whole]))
        assert "The labels were given to whole conversations." in text
        assert "single responses" not in text
        text = self._text(tmp_path / "single", name, MemoryRun(pairs=[single]))
        assert "**The judge compared single responses, not whole conversations.**" in text
        assert "were given to whole" not in text
        text = self._text(tmp_path / "mixed", name, MemoryRun(pairs=[single, whole, compared(2, GOOD, BAD)]))
        assert "**The judge compared single responses in 1 of 3 rows, not whole conversations.**" in text

    @pytest.mark.parametrize("by", ["human", "probability"])
    def test_other_sources_label_whole_conversations(self, by: str, tmp_path: Path) -> None:
        """Votes label whole conversations, although a judge that compared responses may have answered too."""
        text = self._text(tmp_path, run=MemoryRun(pairs=[compared(0, GOOD, BAD, by=by, compare="response")]))
        assert "The labels were given to whole conversations; a row holds the turn" in text
        assert f"- rows with a preference by `{by}`: 1" in text

    def test_says_of_ties_what_the_judge_compared(self, tmp_path: Path) -> None:
        run = MemoryRun(pairs=[compared(0, GOOD, BAD, chosen=None, left_out="tie", compare="response")])
        text = self._text(tmp_path, "mtpo", run)
        assert "**The judge compared single responses, not whole conversations.**" in text
        assert "A simulator wrote these conversations and had a part in their labels." in text

    def test_verl_has_the_command_of_its_current_trainer(self, tmp_path: Path) -> None:
        text = self._text(tmp_path, "verl").split("## Use")[1]
        command = text.split("```")[1]
        assert "-m verl.trainer.sft_trainer data.messages_key=messages" in command
        assert "multiturn" not in command  # gone since 0.7.1, with verl.trainer.fsdp_sft_trainer
        assert "model.path=MODEL" in command

    def test_mtpo_says_what_is_in_it(self, tmp_path: Path) -> None:
        text = self._text(tmp_path, "mtpo")
        assert "(contradicted) gives no label in other formats; here it has its own p" in text
        assert "Pairs below the margin or beyond the number" in text

    def test_kto_says_how_many_are_good_and_what_balances_them(self, tmp_path: Path) -> None:
        def said(word: str) -> tuple[Turn, ...]:
            return turns("T Hi.", "S Ok.", f"T {word}.", "S Bye.")

        # One that beats three: 1 true, 3 false. The test split does not count for the weight.
        more_bad = [compared(0, said("x"), said(word), numbers=(0, i)) for i, word in enumerate("abc", 1)]
        text = self._text(
            tmp_path / "bad", "trl-kto", MemoryRun(pairs=[*more_bad, compared(1, GOOD, BAD, split="test")])
        )
        assert "train has 1 true and 3 false rows, test has 1 true and 1 false rows." in text
        assert "KTOConfig(desirable_weight=3.00)" in text
        more_good = [compared(0, said(word), said("x"), numbers=(i, 9)) for i, word in enumerate("abc")]
        more_good.append(compared(1, said("a"), said("y"), numbers=(0, 1)))
        text = self._text(tmp_path / "good", "trl-kto", MemoryRun(pairs=more_good))
        assert "train has 3 true and 2 false rows" in text
        assert "KTOConfig(undesirable_weight=1.50)" in text
        text = self._text(tmp_path / "even", "trl-kto", MemoryRun(pairs=[compared(0, GOOD, BAD)]))
        assert "train has 1 true and 1 false rows" in text
        assert "can stay at 1.0" in text
        only_test = MemoryRun(pairs=[compared(0, GOOD, BAD, split="test")])
        assert "No weight balances" in self._text(tmp_path / "none", "trl-kto", only_test)

    @pytest.mark.parametrize("name", ["trl-kto", "openrlhf"])
    def test_unpaired_labels_come_with_their_rule_and_what_it_left_out(
        self, name: str, tmp_path: Path
    ) -> None:
        pairs = [
            compared(0, GOOD, BAD, strengths=(1.0, -1.0)),
            compared(1, turns("T Hi.", "S Ok."), turns("T Hey.", "S Ok."), strengths=(0.1, -0.1)),
        ]
        text = self._text(tmp_path, name, MemoryRun(pairs=pairs), opening="user")
        assert "the middle is the mean strength of the completions" in text
        assert "preferred to the middle with a probability of at least 0.55" in text
        assert "| middling | 2 | about as strong as the middle" in text

    def test_a_pairs_own_reasons_are_in_the_words_of_the_pairs(self, tmp_path: Path) -> None:
        assert UNLABELLED.items() <= REASONS.items()
        pairs = [compared(0, GOOD, BAD)]
        pairs += [
            compared(i, GOOD, BAD, chosen=None, left_out=reason) for i, reason in enumerate(UNLABELLED, 1)
        ]
        text = self._text(tmp_path, run=MemoryRun(pairs=pairs))
        for reason, meaning in UNLABELLED.items():
            assert f"| {reason} | 1 | {meaning} |" in text

    def test_no_licence_unless_stated(self, tmp_path: Path) -> None:
        self._text(tmp_path / "none")
        assert "license" not in head(tmp_path / "none" / "out")
        self._text(tmp_path / "mit", license="mit")
        assert head(tmp_path / "mit" / "out")["license"] == "mit"

    def test_says_what_it_was_made_with_and_no_address(self, tmp_path: Path) -> None:
        text = self._text(tmp_path, opening="user")
        assert "- job.backends.default.model: `m-1`" in text
        who = "oracle · 0123456789abcdef · judge-1 · compare=conversation"
        assert f"rows with a preference by `{who}`: 2" in text
        assert "opening template: `export_opening`" in text
        assert "10.9.8.7" not in text
        assert "API_KEY" not in text

    def test_what_others_named_has_no_meaning_in_markdown(self, tmp_path: Path) -> None:
        class Odd(MemoryRun):
            def describe(self) -> dict[str, Any]:
                return {"model": "x`\n# <b>heading</b>"}

        text = self._text(tmp_path, run=Odd(pairs=RUN.pairs))
        assert "- model: `x' # <b>heading</b>`" in text

    @pytest.mark.parametrize("name", OF_EDUCATION)
    def test_shows_how_to_load_it(self, name: str, exported: Callable[[str], Path]) -> None:
        text = (exported(name) / "README.md").read_text(encoding="utf-8")
        assert "THIS_FOLDER" in text
        assert len(FORMATS[name].use.splitlines()) <= 6


class TestDigest:
    """The digest that keeps `datasets` from confusing two exports."""

    def _digests(self, folder: Path) -> dict[str, str]:
        return {one["config_name"]: one["description"] for one in head(folder).get("configs", ())}

    @pytest.mark.parametrize("name", TABLES)
    def test_every_table_states_the_digest_of_its_rows(
        self, name: str, tmp_path: Path, exported: Callable[[str], Path]
    ) -> None:
        """The digest differs between exports with other rows.

        `test_the_same_run_gives_the_same_bytes` proves that the same rows have the same digest.
        """
        # with as many rows and the same columns
        begun = turns("T What is half of 6?", "S No idea.")
        good, bad = (*begun, *GOOD[2:]), (*begun, *BAD[2:])
        other = MemoryRun(
            taught=[
                lesson(one.scenario.index, one.candidate.replicate, good if one.candidate.replicate == 0 else bad, one.split)
                for one in RUN.taught
            ],
            pairs=[compared(0, good, bad), compared(1, good, good), compared(2, good, bad, split="test")],
        )  # fmt: skip
        write(name, other, tmp_path / name)
        one, different = self._digests(exported(name)), self._digests(tmp_path / name)
        assert one
        assert one.keys() == different.keys()
        for table, said in one.items():
            assert said.startswith("sha256-")
            assert len(said) == len("sha256-") + 64
            assert different[table] != said

    def test_two_formats_of_the_same_layout_differ(self, exported: Callable[[str], Path]) -> None:
        assert self._digests(exported("trl-sft")) != self._digests(exported("trl-dpo"))


def test_what_others_named_does_nothing_in_a_card(tmp_path: Path) -> None:
    """Foreign text has no effect in a card.

    A dimension's label may be any line of text; a card is Markdown, which may contain HTML, links and images.
    """
    label = "<img src=x onerror=alert(1)> | [x](javascript:alert(1)) ![i](https://evil.example/i.png) `c`"
    education = RUN.space
    dimensions = tuple(msgspec.structs.replace(one, label=label) for one in education.dimensions)
    run = MemoryRun(**{**vars(RUN), "space": msgspec.structs.replace(education, dimensions=dimensions)})
    write("hf", run, tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert text.count("&lt;img src=x onerror=alert(1)&gt;") >= len(dimensions)
    assert "<img" not in text
    assert not re.search(r"(?<!\\)\]\(javascript", text)
    assert "https://evil.example" not in text
