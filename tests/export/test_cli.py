"""`edgen export` on a simulated run, from the command line to the files."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import re
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest
import yaml

from edgen.cli.app import app
from edgen.cli.output import run_guarded
from edgen.core import resources
from edgen.core.people.sheets import disarm
from edgen.store.run_reader import RunReader
from tests.cli.command import Command, get_command
from tests.export.runs import FORMATS, OF_EDUCATION
from tests.export.test_walk import check_files

pytestmark = pytest.mark.integration

JOB = """\
name: tiny
seed: 7
conversations: 6
replicates: 3
space: education_dialogue
protocol: selfplay
branch: {at: sampled}
backends: {default: {type: simulator}}
split: {test: 0.34}
"""

ARMED = """\
name: armed
seed: 7
conversations: 12
space: education_dialogue
prompt: education_dialogue
asks: 1
backends: {default: {type: simulator}}
arms:
  plain: {}
  other: {prompt: education_dialogue_json, backends: {default: {faults: "refusal=0.5"}}}
"""


def _run(*arguments: str | Path) -> int:
    try:
        return run_guarded(lambda: get_command(app)([str(a) for a in arguments], prog_name="edgen"))
    except SystemExit as end:
        return int(end.code or 0)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with conversations and no pairs."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "job.yaml").write_text(JOB)
    assert _run("generate", folder / "job.yaml", "-o", folder / "run") == 0
    return folder / "run"


@pytest.fixture(scope="module")
def paired(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with pairs."""
    folder = tmp_path_factory.mktemp("paired")
    (folder / "job.yaml").write_text(JOB)
    assert _run("generate", folder / "job.yaml", "-o", folder / "run") == 0
    assert _run("pairs", folder / "run", "--by", "oracle") == 0
    return folder / "run"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.mark.parametrize("name", OF_EDUCATION)
def test_every_format_of_a_real_run(name: str, paired: Path, tmp_path: Path, command: Command) -> None:
    ended = command("export", paired, "--to", name, "-o", tmp_path / "out", "--json")
    assert ended.code == 0, ended.err
    facts = json.loads(ended.out)
    assert facts["format"] == name
    assert facts["dir"] == str(tmp_path / "out")
    assert facts["rows"]["train"] > 0
    assert (tmp_path / "out" / "README.md").exists()
    with RunReader(paired) as reader:
        pairs, lessons = list(reader.compared()), list(reader.conversations())
        counts = facts.get("tables", {"default": facts["rows"]})
        check_files(tmp_path / "out", FORMATS[name], counts, reader.space)
    total = sum(facts["rows"].values()) + sum(facts["left_out"].values())
    if FORMATS[name].of == "pairs" and name not in ("trl-kto", "openrlhf", "llamafactory", "sweet"):
        assert total == len(pairs)
    elif name == "csv":
        assert total == sum(len(lesson.candidate.turns) for lesson in lessons)
    elif name == "sft":
        replies = (itertools.groupby(lesson.candidate.turns, lambda turn: turn.role) for lesson in lessons)
        assert total == sum(role == "Teacher" for runs in replies for role, _ in runs)
    elif not FORMATS[name].layout.prompts_only and FORMATS[name].of == "conversations":
        assert total == len(lessons) == 18


def test_no_scenario_is_on_both_sides(paired: Path, tmp_path: Path, command: Command) -> None:
    for name in ("trl-dpo", "trl-sft"):
        command("export", paired, "--to", name, "-o", tmp_path / name)
        sides = []
        for split in ("train", "test"):
            lines = (tmp_path / name / f"{split}.jsonl").read_text().splitlines()
            sides.append({json.loads(line)["id"].split("-")[1] for line in lines})
        assert all(sides)
        assert not sides[0] & sides[1]


def test_the_student_can_be_trained(paired: Path, tmp_path: Path, command: Command) -> None:
    command("export", paired, "--to", "trl-sft", "-o", tmp_path / "out", "--train", "student")
    row = json.loads((tmp_path / "out" / "train.jsonl").read_text().splitlines()[0])
    with RunReader(paired) as reader:
        said = next(
            lesson for lesson in reader.conversations() if lesson.candidate.id == row["id"]
        ).candidate.turns
    assert said[0].role == "Teacher"
    assert row["messages"][0] == {"role": "user", "content": said[0].text, "train": False}


def test_a_person_reads_counts_and_reasons(paired: Path, tmp_path: Path, command: Command) -> None:
    ended = command("export", paired, "--to", "trl-prompts", "-o", tmp_path / "out")
    assert ended.code == 0
    assert f"{tmp_path / 'out'} is ready" in ended.out
    assert "repeated: the same row is in the data already" in ended.out
    assert "README.md" in ended.out


def test_a_template_of_ones_own(paired: Path, tmp_path: Path, command: Command) -> None:
    (tmp_path / "mine.j2").write_text("Teach me about {{ topic }}, {{ role }}!")
    arguments = ("export", paired, "--to", "trl-sft", "--opening-prompt", tmp_path / "mine.j2")
    assert command(*arguments, "-o", tmp_path / "out").code == 0
    row = json.loads((tmp_path / "out" / "train.jsonl").read_text().splitlines()[0])
    assert row["messages"][0]["content"].startswith("Teach me about ")
    assert row["messages"][0]["content"].endswith(", teacher!")
    ended = command(*arguments, "-o", tmp_path / "two", "--opening", "system")
    assert ended.code == 2
    assert "mine.j2" in ended.err
    assert not (tmp_path / "two").exists()


def test_a_data_set_says_what_its_user_states(generated: Path, tmp_path: Path, command: Command) -> None:
    ended = command(
        "export", generated, "--to", "hf", "-o", tmp_path / "out", "--files", "jsonl",
        "--license", "cc-by-4.0", "--language", "en",
    )  # fmt: skip
    assert ended.code == 0
    front = yaml.safe_load((tmp_path / "out" / "README.md").read_text().split("---\n")[1])
    assert (front["license"], front["language"]) == ("cc-by-4.0", ["en"])
    assert sorted(p.name for p in (tmp_path / "out" / "data").iterdir())[0] == "test-00000-of-00001.jsonl"
    with RunReader(generated) as reader:
        said = {one.candidate.id: one.record["conversation"] for one in reader.conversations()}
    written = [
        json.loads(line)
        for p in (tmp_path / "out" / "data").iterdir()
        for line in p.read_bytes().splitlines()
    ]
    assert {row["id"]: row["conversation"] for row in written} == said


def test_the_card_of_a_real_run_says_what_became_of_it(
    generated: Path, tmp_path: Path, command: Command
) -> None:
    command("export", generated, "--to", "csv", "-o", tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text()
    assert "| tiny | 18 | 18 | 0 | 0 | 0 |" in text
    assert "- job.protocol: `selfplay`" in text


def test_the_card_of_an_experiment_tells_the_arms_apart(tmp_path: Path, command: Command) -> None:
    (tmp_path / "job.yaml").write_text(ARMED)
    assert command("generate", tmp_path / "job.yaml", "-o", tmp_path / "run").code == 3
    assert command("export", tmp_path / "run", "--to", "hf", "-o", tmp_path / "out").code == 0
    text = (tmp_path / "out" / "README.md").read_text()
    assert "| plain | 12 | 12 | 0 | 0 | 0 |" in text
    assert "- arms.other.changes: `prompt=education_dialogue_json, default.faults=refusal=0.5`" in text
    shas = {
        arm: re.search(rf"- arms\.{arm}\.template_sha256: (`\w{{64}}`)", text) for arm in ("plain", "other")
    }
    assert all(shas.values())
    for arm, sha in shas.items():
        assert sha is not None
        assert re.search(
            rf"Arm `{arm}`: \d+ rows by model `edgen-simulator` with template_sha256 {sha[1]}\.", text
        )
    assert re.search(r"of 12 planned conversations of other, \d+ \(\d+\.\d%\) were rejected", text)
    assert 'row["arm"] == "NAME"' in text


def test_the_card_lists_every_template_of_an_arm_and_says_what_it_knew(
    tmp_path: Path, command: Command
) -> None:
    job = yaml.safe_load(ARMED) | {"arms": {"plain": {}, "agents": {"protocol": "selfplay", "prompt": None}}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    assert command("generate", tmp_path / "job.yaml", "-o", tmp_path / "run").code == 0
    assert command("export", tmp_path / "run", "--to", "hf", "-o", tmp_path / "out").code == 0
    text = (tmp_path / "out" / "README.md").read_text()
    for side in ("teacher", "student"):
        sha = hashlib.sha256(
            (resources.find_folder("prompts") / f"selfplay_{side}.j2").read_bytes()
        ).hexdigest()
        assert f"- arms.agents.template_sha256.{side}: `{sha}`" in text
    assert "- arms.agents.template_sha256:" not in text
    plain = hashlib.sha256(
        (resources.find_folder("prompts") / "education_dialogue.j2").read_bytes()
    ).hexdigest()
    assert f"- arms.plain.template_sha256: `{plain}`" in text
    assert "- Arm plain: One prompt plays all roles" in text
    assert "- Arm agents: An agent plays each role" in text
    assert "was not finished" not in text


def test_an_export_of_an_unfinished_run_says_so(tmp_path: Path, command: Command) -> None:
    job = yaml.safe_load(ARMED) | {"arms": {"plain": {}, "late": {}}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    assert command("generate", tmp_path / "job.yaml", "-o", tmp_path / "run").code == 0
    with sqlite3.connect(tmp_path / "run" / "arms" / "plain" / "run.db") as ledger:
        ledger.execute("DELETE FROM outcomes WHERE scenario >= 9")
    for path in (tmp_path / "run" / "arms" / "late").glob("run.db*"):
        path.unlink()
    ended = command("export", tmp_path / "run", "--to", "hf", "-o", tmp_path / "out", "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["left_out"] == {}
    text = (tmp_path / "out" / "README.md").read_text()
    for sentence in (
        "The run was not finished: 3 of 12 planned conversations of plain were pending.",
        "The run was not finished: its arm late had not started, and none of it is included.",
    ):
        assert sentence in ended.err
        assert f"**{sentence}**" in text.partition("## Columns")[0]
        assert f"- {sentence}" in text.partition("## Known limits")[2]
    assert "| plain | 12 | 9 | 0 | 0 | 3 |" in text
    assert "| late | not begun |" in text
    assert "all conversations of the run" not in text


def test_the_strict_layout_is_what_validate_takes(generated: Path, tmp_path: Path, command: Command) -> None:
    command("export", generated, "--to", "ed", "-o", tmp_path / "out")
    ended = command("validate", tmp_path / "out", "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["valid"] == json.loads(ended.out)["records"] == 18


def test_without_pyarrow_a_data_set_is_json_lines(
    generated: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # so that it cannot be imported
    done = command("export", generated, "--to", "hf", "-o", tmp_path / "out")
    assert done.code == 0, done.err
    assert "pyarrow is not installed, so the data is JSON Lines" in done.err
    assert all(path.suffix == ".jsonl" for path in (tmp_path / "out" / "data").iterdir())
    done = command("export", generated, "--to", "hf", "-o", tmp_path / "two", "--files", "parquet")
    assert done.code == 2
    assert "[parquet]'" in done.err or "--extra parquet" in done.err
    assert not (tmp_path / "two").exists()


def test_help_names_every_format(command: Command) -> None:
    shown = "".join(command("export", "--help").out.split())  # lines may break inside a name
    assert all(re.search(rf"[:,]{name}[,.]", shown) for name in FORMATS)


def test_without_a_format_the_formats_are_listed(generated: Path, paired: Path, command: Command) -> None:
    ended = command("export", generated)
    assert ended.code == 0
    for name, format_ in FORMATS.items():
        line = next(line for line in ended.out.splitlines() if line.startswith(f"{name} "))
        assert format_.summary in line
        assert ("Needs pairs." in line) == (format_.of == "pairs")
    assert "no pairs yet" in ended.out
    assert "no pairs yet" not in command("export", paired).out
    listed = json.loads(command("export", generated, "--json").out)
    assert (listed["run"], listed["pairs"]) == (str(generated), False)
    assert {one["format"]: one["needs"] for one in listed["formats"]}["trl-dpo"] == ["pairs"]
    assert [one["format"] for one in listed["formats"]] == list(FORMATS)


def _table(folder: Path) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            rows += csv.DictReader(file)
    return rows


def test_a_table_holds_no_formulas_unless_asked_for(tmp_path: Path, command: Command) -> None:
    (tmp_path / "space.yaml").write_text(
        "name: odd\ntopics: ['=HYPERLINK(\"http://127.0.0.1/\")', '  \"@SUM(1)']\nstudent_preferences: [lectures]\n"
        "student_reactions: [sulks]\nteacher_preferences: ['+1 talk']\nteacher_reactions: [adapts]\n".replace(
            "'  ", "'"
        )
    )
    (tmp_path / "job.yaml").write_text(
        "name: odd\nseed: 1\nconversations: 4\nspace: space.yaml\nprompt: education_dialogue\n"
        "backends: {default: {type: simulator}}\n"
    )
    assert command("generate", tmp_path / "job.yaml", "-o", tmp_path / "run").code == 0
    safe = command("export", tmp_path / "run", "--to", "csv", "-o", tmp_path / "safe", "--json")
    raw = command(
        "export", tmp_path / "run", "--to", "csv", "-o", tmp_path / "raw", "--no-csv-safe", "--json"
    )
    assert (safe.code, raw.code) == (0, 0)
    changed = 0
    for one, plain in zip(_table(tmp_path / "safe"), _table(tmp_path / "raw"), strict=True):
        for name, cell in one.items():
            assert not cell.lstrip(' "\t\r').startswith(("=", "+", "-", "@")), name
            assert cell.removeprefix("'") == plain[name] if cell != plain[name] else True
            changed += cell != plain[name]
        assert one["topic"].startswith("'")
    assert changed == json.loads(safe.out)["disarmed"] > 0
    assert json.loads(raw.out)["disarmed"] == 0
    assert f"{changed:,} cells that a spreadsheet would take" in safe.err
    assert f"with an added apostrophe: {changed:,} of them" in (tmp_path / "safe" / "README.md").read_text()
    assert "spreadsheet" not in raw.err
    assert "Texts are kept exactly." in (tmp_path / "raw" / "README.md").read_text()


def test_nothing_is_said_of_cells_where_none_was_changed(
    generated: Path, tmp_path: Path, command: Command
) -> None:
    ended = command("export", generated, "--to", "csv", "-o", tmp_path / "out")
    cells = [cell for row in _table(tmp_path / "out") for cell in row.values()]
    assert not any(cell.startswith("'") for cell in cells)
    assert "apostrophe" not in ended.err + (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("=1+1", True), ("+1", True), ("-1", True), ("@x", True), ("\tx", True), ("\rx", True), (" =1", True),
        ('"=1', True), ("'=1", True), ("\u200b=1", True), ("\n=1", True), ("＝1", True), ("“ @a", True),
        ("a=1", False), ("", False), ("'tis so", False), ("2 - 1", False), ("*sighs*", False), ("(=1)", False),
    ],
)  # fmt: skip
def test_what_is_disarmed(text: str, changed: bool) -> None:
    assert disarm(text) == (f"'{text}" if changed else text)


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--to", "csv", "--files", "jsonl"), "csv does not take --files; hf does. Leave --files out."),
            (("--to", "hf", "--no-csv-safe"), "hf does not take --no-csv-safe; csv does."),
            ((), "--to is missing"),
            (("--to", "hf", "--language", "English please"), "not a language code"),
            (("--to", "hf", "--license", " "), "--license is empty"),
            (("--to", "hf", "--license", "mit\nor not"), "--license holds a line feed"),
            (("--to", "huggingface"), "known:"),
            (("--to", "convo-kit"), "did you mean 'convokit'?"),
            (("--to", "hf", "--train", "student"), "hf does not take --train; "),
        ],
    )
    def test_what_a_data_set_cannot_be(
        self, options: tuple[str, ...], words: str, generated: Path, tmp_path: Path, command: Command
    ) -> None:
        self._refused(command, 2, words, generated, *options, "-o", tmp_path / "out")
        assert list(tmp_path.iterdir()) == []

    def _refused(self, command: Command, code: int, words: str, *arguments: str | Path) -> None:
        ended = command("export", *arguments)
        assert ended.code == code, ended
        assert words in ended.err
        assert ended.out == ""

    def test_an_unknown_format(self, generated: Path, tmp_path: Path, command: Command) -> None:
        self._refused(
            command, 2, "did you mean 'trl-dpo'?", generated, "--to", "trl_dpo", "-o", tmp_path / "out"
        )

    def test_no_folder_is_named(self, generated: Path, command: Command) -> None:
        self._refused(command, 2, "-o is missing", generated, "--to", "hf")

    def test_no_run(self, tmp_path: Path, command: Command) -> None:
        self._refused(command, 2, "no run", tmp_path / "none", "--to", "trl-sft", "-o", tmp_path / "out")
        self._refused(command, 2, "no run", tmp_path / "none")

    @pytest.mark.parametrize("name", [n for n, f in FORMATS.items() if f.of == "pairs"])
    def test_no_pairs(self, name: str, generated: Path, tmp_path: Path, command: Command) -> None:
        self._refused(command, 2, "edgen pairs", generated, "--to", name, "-o", tmp_path / "out")
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_holds_something(self, generated: Path, tmp_path: Path, command: Command) -> None:
        (tmp_path / "kept").write_text("mine")
        self._refused(command, 2, "not empty", generated, "--to", "trl-sft", "-o", tmp_path)

    def test_a_folder_in_the_run(self, generated: Path, command: Command) -> None:
        before = sorted(generated.iterdir())
        for folder in (generated, generated / "dpo", generated / "shards" / "dpo"):
            self._refused(
                command, 2, "a run's folder is the run's", generated, "--to", "trl-sft", "-o", folder
            )
        assert sorted(generated.iterdir()) == before

    def test_every_pair_left_out(self, paired: Path, tmp_path: Path, command: Command) -> None:
        """If all pairs part at a teacher's turn, no pair is left for the student's turn."""
        run = shutil.copytree(paired, tmp_path / "run")
        lines = (run / "pairs" / "pairs.jsonl").read_text().splitlines(keepends=True)
        parted = [line for line in lines if json.loads(line)["differs_at"] == "Teacher"]
        assert parted
        (run / "pairs" / "pairs.jsonl").write_text("".join(parted))
        self._refused(
            command,
            3,
            "`--train teacher` trains that side",
            *(run, "--to", "trl-dpo", "-o", tmp_path / "out", "--train", "student"),
        )
        assert list(tmp_path.iterdir()) == [run]

    @pytest.mark.parametrize("option", [("--train", "student"), ("--opening", "both")])
    def test_ed_has_no_trained_side(
        self, option: tuple[str, str], generated: Path, tmp_path: Path, command: Command
    ) -> None:
        self._refused(
            command, 2, "ed does not take --", generated, "--to", "ed", "-o", tmp_path / "out", *option
        )
