"""A user's function as a measure: from a file on the command line, under a job's `measures`, or in Python."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import edgen
from edgen.core import registry
from edgen.core.errors import InputError
from tests.cli.command import Command

pytestmark = pytest.mark.integration

MINE = '''"""Mine."""

import pathlib

pathlib.Path(__file__).with_name("ran").touch()


def words(conversation):
    "Words of a conversation."
    return sum(len(turn.text.split()) for turn in conversation.turns)


def shape(conversation):
    return {"asks": "?" in str(conversation), "first": conversation.turns[0].role, "turns": len(conversation.turns)}


def broken(conversation):
    return conversation.scenario["nothing"]


def odd(conversation):
    return [1, 2]
'''
JOB = {
    "name": "few",
    "conversations": 12,
    "space": "education_dialogue",
    "prompt": "education_dialogue",
    "backends": {"default": {"type": "simulator"}},
}


@pytest.fixture(autouse=True)
def no_measure_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_added", {})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


@pytest.fixture
def run(here: Path) -> edgen.Run:
    return edgen.generate(JOB, output=here / "run")


def test_means_and_shares_with_intervals(command: Command, run: edgen.Run) -> None:
    ended = command(
        "stats",
        run.folder,
        "--only",
        "lengths",
        "--measure",
        "./mine.py:words",
        "--measure",
        "./mine.py:shape",
        "--json",
    )
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    conversations = [*run]
    words = [sum(len(turn.text.split()) for turn in one.turns) for one in conversations]
    mean = found["words"]["means"][""]
    assert mean["value"] == pytest.approx(sum(words) / len(words))
    assert mean["low"] < mean["value"] < mean["high"]
    asks = found["shape"]["shares"]["asks"]
    assert asks["value"] == pytest.approx(sum("?" in str(one) for one in conversations) / len(words))
    assert found["shape"]["texts"]["first"]["Teacher"]["value"] == 1
    assert found["definitions"]["words"].startswith("Words of a conversation.")
    assert {"lengths", "words", "shape"} <= {*found}


def test_compare_and_select_take_it(command: Command, run: edgen.Run, here: Path) -> None:
    other = edgen.generate(
        {**JOB, "name": "other", "backends": {"default": {"type": "simulator", "seed": 5}}},
        output=here / "other",
    )
    compared = command("compare", run.folder, other.folder, "--measure", "./mine.py:shape", "--json")
    names = {metric["name"] for metric in json.loads(compared.out)["metrics"]}
    assert {"shape.asks", "shape.turns", "shape.first=Teacher"} <= names
    chosen = command(
        "select",
        run.folder,
        "--measure",
        "./mine.py:shape",
        "--where",
        "measures.shape.turns >= 13",
        "-o",
        here / "chosen",
    )
    assert chosen.code == 0, chosen.err
    kept = [*edgen.open(here / "chosen")]
    assert kept
    assert all(len(one.turns) >= 13 for one in kept)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("./mine.py:broken", "the measure broken failed for conversation few-000000-r0 ("),
        ("./mine.py:odd", "the measure odd returned [1, 2] for conversation few-000000-r0; it must be"),
        ("./mine.py:wrods", "it has no function wrods (did you mean 'words'?)"),
        ("./mine.py", "name a Python file and a function in it, as in ./mine.py:words"),
        ("./nobody.py:words", "there is no such file"),
        ("./bad.py:words", "bad.py, line 1: it cannot be run (SyntaxError"),
        ("./mine.py:lengths", "it has no function lengths"),
    ],
)
def test_what_is_wrong_with_it_is_a_sentence(
    command: Command, run: edgen.Run, here: Path, reference: str, said: str
) -> None:
    (here / "bad.py").write_text("def words(:\n")
    ended = command("stats", run.folder, "--measure", reference)
    assert ended.code == 2
    assert said in ended.err
    assert "Traceback" not in ended.err
    if "broken" in reference:
        line = MINE[: MINE.index('["nothing"]')].count("\n") + 1
        assert f"mine.py, line {line})" in ended.err


class TestAJobsOwn:
    def job(self, here: Path, **more: object) -> Path:
        made = {
            **JOB,
            "asks": 10,
            "measures": "./mine.py:shape",
            "gates": {"long": "measures.shape.turns >= 12"},
            **more,
        }
        (here / "job.yaml").write_text(json.dumps(made))
        return here / "job.yaml"

    def test_its_file_is_not_run_without_consent(self, command: Command, here: Path) -> None:
        job = self.job(here)
        assert command("preview", job).code == 0
        assert command("estimate", job).code == 0
        ended = command("generate", job, "-o", here / "gated")
        assert ended.code == 2
        assert f"agree with --trust-code {here / 'mine.py'}" in ended.err
        assert not (here / "ran").exists()
        with pytest.raises(InputError, match="--trust-code"):
            edgen.generate(job, output=here / "gated")
        assert not (here / "ran").exists()

    def test_with_consent_its_gates_hold(self, command: Command, here: Path) -> None:
        job = self.job(here)
        ended = command("generate", job, "-o", here / "gated", "--trust-code", "mine.py")
        assert ended.code == 0, ended.err
        made = [*edgen.open(here / "gated")]
        assert len(made) == 12
        assert all(len(one.turns) >= 12 for one in made)
        assert command("stats", here / "gated", "--only", "lengths").code == 0

    def test_a_yes_is_remembered_for_this_content_alone(
        self, command: Command, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from edgen.evaluation.measure_files import load_job_measures
        from edgen.planning.load import JobSource
        from edgen.runtime.control import Trust

        source = JobSource.of(self.job(here))
        asked: list[str] = []

        def yes(question: str) -> bool:
            asked.append(question)
            return True

        load_job_measures(source.job, source.allowed, Trust(confirm=yes))
        load_job_measures(source.job, source.allowed, Trust())
        assert len(asked) == 1
        kept = here / "config" / "edgen" / "trusted_code.yaml"
        assert kept.stat().st_mode & 0o777 == 0o600
        (here / "mine.py").write_text(MINE + "\n# changed\n")
        with pytest.raises(InputError, match="--trust-code"):
            load_job_measures(source.job, source.allowed, Trust())

    def test_a_runs_folder_is_never_run(self, command: Command, here: Path) -> None:
        job = self.job(here)
        assert command("generate", job, "-o", here / "gated", "--trust-code", "mine.py").code == 0
        (here / "gated" / "mine.py").write_text(MINE)
        (here / "ran").unlink()
        ended = command(
            "generate",
            here / "gated" / "job.yaml",
            "-o",
            here / "again",
            "--trust-code",
            here / "gated/mine.py",
        )
        assert ended.code == 2
        assert "this is a run's folder" in ended.err
        assert not (here / "gated" / "ran").exists()

    def test_its_run_is_measured_with_the_same_file_alone(
        self, command: Command, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def forget() -> None:
            monkeypatch.setattr(registry, "_added", {})

        run, mine = here / "gated", here / "mine.py"
        assert command("generate", self.job(here), "-o", run, "--trust-code", mine).code == 0
        (here / "ran").unlink()
        forget()
        # Without consent the measure is left out with a note, and an explicit request for it is refused.
        ended = command("stats", run, "--json")
        assert ended.code == 0, ended.err
        assert "shape" not in json.loads(ended.out)
        assert (
            f"the measure shape of the run's job is left out: the run wants to run the Python file {mine}"
            in ended.err
        )
        assert "left out" not in command("stats", run, "--only", "lengths").err
        refused = command("stats", run, "--only", "shape")
        assert (refused.code, refused.out) == (2, "")
        assert f"agree with --trust-code {mine}" in refused.err
        assert not (here / "ran").exists()

        agreed = ("--trust-code", mine)
        found = json.loads(command("stats", run, "--only", "shape", "--json", *agreed).out)
        assert found["shape"]["means"]["turns"]["value"] >= 12
        forget()
        assert "shape" in json.loads(command("stats", run, "--json", *agreed).out)
        forget()
        clause = ("--where", "measures.shape.turns >= 14")
        chosen = command("select", run, *clause, "-o", here / "chosen", *agreed)
        assert chosen.code == 0, chosen.err
        forget()
        compared = command("compare", run, here / "chosen", "--json", *agreed)
        assert "shape.turns" in {metric["name"] for metric in json.loads(compared.out)["metrics"]}

        # A run derived from this one knows the file as well.
        shutil.copytree(run, here / "copy")
        assert command("merge", run, here / "copy", "-o", here / "both").code == 0
        for made in (here / "chosen", here / "both"):
            forget()
            assert "shape" in json.loads(command("stats", made, "--json", *agreed).out), made.name
        forget()
        left_out = command("report", run)
        assert left_out.code == 0, left_out.err
        assert "the measure shape of the run's job is left out" in left_out.err
        assert 'id="figure-shape"' not in (run / "report.html").read_text()
        assert command("report", run, *agreed).code == 0
        assert 'id="figure-shape"' in (run / "report.html").read_text()

        forget()
        mine.write_text(MINE + "# changed")
        changed = command("stats", run, "--only", "shape", *agreed)
        assert changed.code == 2
        assert (
            f"{mine}: this file of the run's measure shape has changed since the run was made" in changed.err
        )
        assert command("stats", run, "--only", "shape", "--measure", "./mine.py:shape").code == 0
        forget()
        mine.unlink()
        gone = command("select", run, *clause, "-o", here / "other", *agreed)
        assert gone.code == 2
        assert f"{mine}: this file of the run's measure shape is missing" in gone.err

    def test_a_file_that_changes_between_two_starts_is_told(
        self, command: Command, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run, agreed = here / "gated", ("--trust-code", here / "mine.py")
        assert command("generate", self.job(here), "-o", run, *agreed).code == 0
        (here / "mine.py").write_text(MINE + "# changed")
        more = command("generate", self.job(here), "-n", "14", "-o", run, *agreed)
        assert more.code == 0, more.err
        assert "Conversations made before are not gated again" in more.err
        monkeypatch.setattr(registry, "_added", {})
        assert command("stats", run, "--only", "shape", *agreed).code == 0

    def test_a_file_outside_of_the_project(self, command: Command, here: Path) -> None:
        (here / "project").mkdir()
        job = self.job(here / "project", measures="../mine.py:shape")
        ended = command("generate", job, "-o", here / "gated", "--trust-code", "mine.py")
        assert ended.code == 2
        assert "outside of the job's project" in ended.err


class TestInPython:
    def test_a_decorated_function_is_a_measure_everywhere(self, here: Path) -> None:
        @edgen.measure
        def questions(conversation):  # type: ignore[no-untyped-def]
            return str(conversation).count("?")

        job = {**JOB, "asks": 10, "gates": {"curious": "questions >= 3"}}
        run = edgen.generate(job, output=here / "run")
        assert all(str(one).count("?") >= 3 for one in run)
        assert run.stats(["questions"])["questions"].means[""].n == 12
        assert questions.__name__ == "questions"

    def test_a_jobs_own_file_needs_no_consent_where_the_job_is_written_here(self, here: Path) -> None:
        job = {
            **JOB,
            "asks": 10,
            "measures": ["./mine.py:shape"],
            "gates": {"long": "measures.shape.turns >= 12"},
        }
        assert edgen.generate(job, output=here / "run").status.accepted == 12

    def test_a_name_that_is_taken(self) -> None:
        with pytest.raises(InputError, match="there is a measure lengths already"):
            edgen.measure(lambda _: 1, "lengths")
        with pytest.raises(InputError, match="cannot name a measure"):
            edgen.measure(lambda _: 1)
