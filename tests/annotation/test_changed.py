"""Inputs that changed since a layer was begun, or change during the command.

`edgen annotate` refuses them and keeps the layer.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import edgen
from edgen.store.run_folder import RunFolder
from tests.cli.command import Command
from tests.execution.batch.test_batch_kill import simulator
from tests.execution.service import edgen as edgen_process

JOB = {
    "name": "t", "seed": 3, "conversations": 4, "space": "education_dialogue", "prompt": "education_dialogue",
    "backends": {"default": {"type": "simulator"}},
}  # fmt: skip
SET = """\
name: own
roles: [Teacher]
labels:
- {name: Warm, definition: praises}
- {name: Cold, definition: blames}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return edgen.generate(JOB, output=tmp_path_factory.mktemp("made") / "run", progress=False).folder


def contents(run: Path) -> dict[Path, bytes]:
    """Return the files of the run's layers, except those that SQLite writes when a ledger is read."""
    return {
        path: path.read_bytes()
        for path in (run / "layers").rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


def test_a_run_that_is_worked_on(command: Command, run: Path) -> None:
    with RunFolder(run).lock_for_writing():
        for more in ((), ("--dry-run",)):
            ended = command("annotate", run, "--labels", "teacher_moves", *more)
            assert ended.code == 6, ended.err
            assert "works on this run" in " ".join(ended.err.split())
    assert not (run / "layers").exists()


def test_a_label_set_or_an_annotator_that_was_changed_under_its_name(
    command: Command, run: Path, tmp_path: Path
) -> None:
    own, template = tmp_path / "own.yaml", tmp_path / "mine.j2"
    own.write_text(SET)
    said = ("annotate", run, "--labels", str(own))
    assert command(*said).code == 0
    before = contents(run)
    shipped = Path(__file__).parents[2] / "prompts" / "label_turns.j2"
    template.write_text(shipped.read_text() + "\nAnswer now.\n")

    def refused(*more: str) -> str:
        texts = []
        for dry in ((), ("--dry-run",)):
            ended = command(*said, *more, *dry)
            assert ended.code == 2, ended.err
            texts.append(" ".join(ended.err.split()))
        assert texts[0] == texts[1], "asked for an estimate it says the same"
        assert contents(run) == before
        return texts[0]

    planted = 'backends.default={"type": "simulator", "confusion": {"*": {"*": 0.2}}}'
    assert "(different: backend)" in refused("--set", planted)
    assert "(different: template)" in refused("--prompt", str(template))
    assert "(different: together)" in refused("--together")
    assert "has other labels or units" in refused("--unit", "conversation")
    own.write_text(SET.replace("praises", "praises or thanks"))
    assert "has other labels or units" in refused()
    assert command(*said, "--layer", "second").code == 0
    own.write_text(SET)
    assert command(*said, "--by", "other=default", "--set", planted).code == 0


def test_what_could_not_be_begun_leaves_nothing(
    command: Command, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    keyed = 'backends.k={"type": "openai", "model": "m", "api_key_env": "NO_SUCH_KEY"}'
    by = ("--by", "default", "--by", "k", "--set", keyed)
    ended = command("annotate", run, "--labels", "teacher_moves", *by)
    assert ended.code == 5, ended.err
    assert "NO_SUCH_KEY" in ended.err
    assert not (run / "layers").exists(), "nobody is asked before all can be"
    assert command("annotate", run, "--labels", "teacher_moves", *by, "--dry-run").code == 0


@pytest.mark.integration
async def test_a_layer_begun_before_forms_existed_goes_on_in_prose(run: Path) -> None:
    """An annotator that was begun in prose continues in prose.

    Its notes have no form, although its backend takes one now.
    """
    async with simulator() as url:
        backend = {"type": "openai", "model": "m", "base_url": f"{url}/v1", "seed": "auto", "max_tokens": 500}
        said = (
            "annotate", run, "--labels", "teacher_moves", "--layer", "moves", "--json",
            "--backend", "old=default", "--set", f"backends.default={json.dumps(backend)}",
        )  # fmt: skip
        begun = await edgen_process(*said, "--sample", "2", "--set", "forms=prose")
        assert begun.code == 0, begun.err
        noted = json.loads((run / "layers" / "moves" / "annotators" / "old.json").read_text())
        assert "forms" not in noted
        ended = await edgen_process(*said)
        assert ended.code == 0, ended.err
        assert json.loads((run / "layers" / "moves" / "annotators" / "old.json").read_text()) == noted | {
            "sample": None
        }
        fresh = await edgen_process(*(word if word != "old=default" else "new=default" for word in said))
        assert fresh.code == 0, fresh.err
        assert (
            json.loads((run / "layers" / "moves" / "annotators" / "new.json").read_text())["forms"] == "auto"
        )
        other = await edgen_process(*said, "--set", "forms=schema")
        assert other.code == 2
        assert "had other settings (different: forms)" in " ".join(other.err.split())
