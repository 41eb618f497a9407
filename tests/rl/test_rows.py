"""Every export is a data set that `datasets` loads from its folder, with the promised splits and rows.

Its conversations pass through third-party chat templates: those that TRL ships.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import trl
from datasets import get_dataset_config_names

from tests.rl import tiny
from tests.rl.pipeline import JOB, Exports, Message, Row, Tokenizers, edgen, joined

pytestmark = pytest.mark.integration

FORMATS = (
    "trl-dpo", "trl-conversation", "trl-kto", "trl-sft", "sft", "trl-prompts",
    "sharegpt", "llamafactory", "openrlhf", "refuel", "verl", "mtpo",
)  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_a_folder_loads(exports: Exports, name: str) -> None:
    summary = exports.summary(name)
    data = exports.load(name)
    assert summary["format"] == name
    assert set(data) == {"train", "test"}
    assert all(len(split) > 0 for split in data.values())
    tables = {
        config: {split: len(rows) for split, rows in exports.load(name, config=config).items()}
        for config in get_dataset_config_names(str(exports.folder(name)))
    }
    assert summary.get("tables", {"default": summary["rows"]}) == tables
    assert {split: len(rows) for split, rows in data.items()} == summary["rows"]


def test_every_conversation_is_a_lesson_to_imitate(exports: Exports) -> None:
    """Supervised formats contain each accepted conversation once, identical ones included."""
    lessons = exports.lessons()
    for name in ("trl-sft", "sharegpt", "verl"):
        repeated = exports.summary(name)["left_out"].get("repeated", 0)
        assert sum(len(split) for split in exports.load(name).values()) + repeated == len(lessons)


def test_trl_reads_sharegpt_as_its_own_format(exports: Exports) -> None:
    """TRL turns a sharegpt row's `conversations` into trl-sft's `messages`, apart from the names."""
    names = {"human": "user", "gpt": "assistant", "system": "system"}
    converted = [
        [
            (names[message["role"]], message["content"])
            for message in trl.maybe_convert_to_chatml(row)["messages"]
        ]
        for row in exports.train("sharegpt", opening="both")
    ]
    expected = [
        [(message["role"], message["content"]) for message in row["messages"]]
        for row in exports.train("trl-sft", opening="both")
    ]
    # sharegpt has whole rounds: a last message by the user is cut there.
    assert converted == [messages[:-1] if messages[-1][0] == "user" else messages for messages in expected]


def whole_conversations(name: str, row: Row) -> Iterator[list[Message]]:
    """Yield the conversations in a row, prompt and continuation joined."""
    if name == "trl-dpo":
        yield row["prompt"] + row["chosen"]
        yield row["prompt"] + row["rejected"]
    elif name == "trl-kto":
        yield row["prompt"] + row["completion"]
    elif name == "trl-conversation":
        yield row["chosen"]
        yield row["rejected"]
    else:
        yield row["messages"]


# Refused by these templates: gemma refuses a system message, a first message that is not the user's, and
# roles that do not alternate; cohere the last two. The others accept anything, and show that no text breaks
# them.
PUBLISHED = {"gemma": ("user",), "cohere": ("user", "both"), "llama3": ("user", "system", "both"),
             "qwen2_5": ("user", "system", "both"), "phi3": ("user", "system", "both")}  # fmt: skip


def published(name: str) -> str:
    """Return a chat template of a published model, as TRL ships it."""
    return (Path(trl.__file__).parent / "chat_templates" / f"{name}.jinja").read_text()


@pytest.mark.parametrize(
    ("template", "opening"), [(name, opening) for name, fits in PUBLISHED.items() for opening in fits]
)
def test_published_templates_take_every_row(
    exports: Exports, tokenizers: Tokenizers, template: str, opening: str
) -> None:
    """The rendered text of a prompt is a prefix of the text of prompt and answer."""
    tokens = tokenizers.with_template(published(template))
    for name in ("trl-dpo", "trl-kto", "trl-conversation", "trl-sft", "verl"):
        for rows in exports.load(name, opening=opening).values():
            for row in rows:
                start = ""
                if "prompt" in row:
                    start = tokens.apply_chat_template(
                        row["prompt"], add_generation_prompt=True, tokenize=False
                    )
                for messages in whole_conversations(name, row):
                    text = tokens.apply_chat_template(messages, tokenize=False)
                    assert text.startswith(start)
                    assert all(message["content"].strip() in text for message in messages)


@pytest.mark.parametrize("template", tiny.TEMPLATES.values(), ids=tiny.TEMPLATES.keys())
def test_a_prompt_waits_for_the_trained_side(exports: Exports, tokenizers: Tokenizers, template: str) -> None:
    tokens = tokenizers.with_template(template)
    for rows in exports.load("trl-prompts").values():
        for row in rows:
            assert row["prompt"][-1]["role"] == "user"
            assert trl.is_conversational(row)
            text = tokens.apply_chat_template(row["prompt"], add_generation_prompt=True, tokenize=False)
            assert text.endswith(f"{tiny.BEGIN}assistant\n")


def pairs(exports: Exports) -> dict[str, Row]:
    lines = (exports.run / "pairs" / "pairs.jsonl").read_text().splitlines()
    return {pair["id"]: pair for pair in map(json.loads, lines)}


def test_no_scenario_is_on_both_sides_of_the_split(exports: Exports) -> None:
    """By the pairs' own file, and by the rows: no prompt of the test split is in train."""
    sides: dict[int, set[str]] = {}
    for pair in pairs(exports).values():
        sides.setdefault(pair["scenario"], set()).add(pair["split"])
    assert all(len(found) == 1 for found in sides.values())
    train, test = (
        {json.dumps(row["messages"]) for row in exports.load("trl-sft")[split]} for split in ("train", "test")
    )
    assert not train & test


def test_openrlhf_pairs_are_trl_pairs(exports: Exports) -> None:
    """TRL finds the prompts of trl-dpo where it must find the prompt that two conversations share."""
    found = {row["id"]: trl.extract_prompt(row) for row in exports.load("openrlhf", config="pairs")["train"]}
    expected = {row["id"]: row for row in exports.train("trl-dpo")}
    assert found.keys() == expected.keys()
    for name, row in found.items():
        for part in ("prompt", "chosen", "rejected"):
            assert row[part] == expected[name][part]


def test_openrlhf_scores_are_trl_labels(exports: Exports) -> None:
    scored = exports.load("openrlhf", config="scored")["train"]
    expected = exports.train("trl-kto")
    assert list(scored["score"]) == [float(label) for label in expected["label"]]
    assert list(scored["out_text"]) == [completion[0]["content"] for completion in expected["completion"]]
    for text, prompt in zip(scored["in_text"], expected["prompt"], strict=True):
        places = [text.index(message["content"]) for message in prompt]
        assert places == sorted(places)


def test_a_kto_row_is_good_or_bad(exports: Exports) -> None:
    """No turn is both good and bad after the same prompt, and none occurs there twice."""
    for rows in exports.load("trl-kto").values():
        said = [json.dumps([row["prompt"], row["completion"]]) for row in rows]
        assert len(set(said)) == len(said)


def test_refuel_conversations_part_at_round_h(exports: Exports) -> None:
    for rows in exports.load("refuel").values():
        for row in rows:
            at = 2 * row["h"] + 1
            assert row["chosen"][:at] == row["reject"][:at]
            assert row["chosen"][at] != row["reject"][at]
            assert row["chosen"][at]["role"] == row["reject"][at]["role"] == "assistant"
            assert row["chosen_reward"] > row["reject_reward"]


def test_mtpo_keeps_ties_and_sides(exports: Exports) -> None:
    """p is of the first conversation, which is side a of the pair; pairs without a verdict are left out."""
    known, lessons = pairs(exports), exports.lessons()
    ties = contradicted = 0
    for rows in exports.load("mtpo").values():
        for row in rows:
            pair = known[row["id"]]
            label = pair["label"]
            if label is None and pair["left_out"] == "contradicted":
                assert row["p"] in [signal["p"] for signal in pair["signals"]["oracle"]]
                contradicted += 1
            elif label is None:
                assert pair["left_out"] == "tie"
                assert row["p"] == 0.5
                ties += 1
            else:
                assert (row["p"] > 0.5) == (label["chosen"] == "a")
            for messages, side in ((row["first"], pair["a"]), (row["second"], pair["b"])):
                spoken = [text for role, text in joined(lessons[side["id"]]) if role == "Teacher"]
                assert [m["content"] for m in messages if m["role"] == "assistant"] == spoken
    assert ties == sum(pair["left_out"] == "tie" for pair in known.values()) > 0
    assert contradicted == sum(pair["left_out"] == "contradicted" for pair in known.values()) > 0


def test_a_chosen_side_is_the_label_s(exports: Exports) -> None:
    """From the pair's label to the row: chosen is the conversation that the label chose."""
    known, lessons = pairs(exports), exports.lessons()
    for rows in exports.load("trl-conversation").values():
        for row in rows:
            pair = known[row["id"]]
            chosen = pair["label"]["chosen"]
            rejected = "b" if chosen == "a" else "a"
            for messages, side in ((row["chosen"], pair[chosen]), (row["rejected"], pair[rejected])):
                spoken = [text for role, text in joined(lessons[side["id"]]) if role == "Teacher"]
                assert [m["content"] for m in messages if m["role"] == "assistant"] == spoken


def test_every_pair_is_a_row_or_counted(exports: Exports, tmp_path: Path) -> None:
    """A turn-level pair is a row for one trained side and left out for the other."""
    teacher = exports.summary("trl-dpo")
    assert sum(teacher["rows"].values()) + sum(teacher["left_out"].values()) == len(pairs(exports))
    assert teacher["left_out"]["tie"] > 0
    assert teacher["left_out"].keys() & {"abstained", "not_judged"}
    if at_student := teacher["left_out"].get("differs_at_other_side", 0):
        student = exports.summary("trl-dpo", train="student")
        assert sum(student["rows"].values()) == at_student
        assert student["left_out"]["differs_at_other_side"] == sum(teacher["rows"].values())
    else:
        arguments = ("export", exports.run, "--to", "trl-dpo", "-o", tmp_path / "out", "--train", "student")
        edgen(*arguments, cwd=tmp_path, code=3)
        assert not (tmp_path / "out").exists()


def test_a_run_without_pairs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    run, target = tmp_path / "run", tmp_path / "none"
    edgen("generate", "job.yaml", "-o", run, "-n", "3", cwd=tmp_path)
    before = sorted(tmp_path.iterdir())
    for name in ("trl-dpo", "mtpo"):
        edgen("export", run, "--to", name, "-o", target, cwd=tmp_path, code=2)
        assert sorted(tmp_path.iterdir()) == before


def test_strict_templates_refuse_what_they_should(tokenizers: Tokenizers) -> None:
    """Rows that pass through these templates pass because they fit: the templates do refuse others."""
    first = [{"role": "assistant", "content": "Hello."}]
    twice = [{"role": "user", "content": "One."}, {"role": "user", "content": "Two."}]
    for template in (tiny.STRICT, published("gemma"), published("cohere")):
        tokens = tokenizers.with_template(template)
        for messages in (first, twice):
            with pytest.raises(Exception, match="must alternate"):
                tokens.apply_chat_template(messages, tokenize=False)
