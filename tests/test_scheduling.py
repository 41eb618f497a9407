"""docs/scheduling.md and examples/scheduling: crontab lines, units, workflow and DAG, run or linted."""

from __future__ import annotations

import ast
import configparser
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

from edgen.core.errors import EdgenError
from tests import fork_server
from tests.readme import ROOT

pytestmark = pytest.mark.integration

TEXT = (ROOT / "docs" / "scheduling.md").read_text()
EXAMPLES = ROOT / "examples" / "scheduling"
# The environment that cron gives a command (crontab(5)).
CRON = {"LOGNAME": "edgen", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_every_reason_of_a_stop_is_listed() -> None:
    def list_kinds(kind: type[EdgenError]) -> Iterator[type[EdgenError]]:
        yield kind
        for below in kind.__subclasses__():
            yield from list_kinds(below)

    listed = re.search(r"^Reasons: (.*?)\. Metrics have", TEXT, re.MULTILINE | re.DOTALL)
    assert listed is not None
    reasons = {kind.reason for kind in list_kinds(EdgenError) if kind.__module__.startswith("edgen.")}
    assert {*re.findall(r"`([a-z_]+)`", listed[1])} == {*reasons, "budget", "plugin", "killed", "bug"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return the folder that the document calls /srv/edgen."""
    for name in ("jobs", "metrics", "outputs"):
        (tmp_path / name).mkdir()
    program = tmp_path / ".venv" / "bin" / "edgen"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(fork_server.in_shell())}/edgen "$@"\n')
    program.chmod(0o755)
    (tmp_path / "jobs" / "nightly.yaml").write_text(blocks("yaml")[0])
    (tmp_path / "keys.env").write_text("OPENAI_API_KEY=sk-of-the-file\n")
    return tmp_path


def here(text: str, place: Path) -> str:
    return text.replace("/srv/edgen", str(place))


def run(
    arguments: list[str], environ: dict[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments, env=environ, cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


def the_run(place: Path) -> Path:
    (made,) = (place / "outputs").iterdir()
    return made


# -- cron


def crontab_lines() -> list[str]:
    return [line for block in blocks("crontab") for line in block.splitlines()]


def command_of(line: str) -> str:
    """Return the command of a crontab line as cron hands it to the shell: `%` ends it unless escaped."""
    *when, command = line.split(None, 5)
    assert len(when) == 5
    assert all(re.fullmatch(r"[\d*,/-]+", field) for field in when)
    assert not re.search(r"(?<!\\)%", command), "cron ends the command at a percent sign"
    return command.replace("\\%", "%")


def test_the_crontab_line_runs_with_crons_environment(place: Path) -> None:
    command = here(command_of(crontab_lines()[0]), place)
    ended = run(["/bin/sh", "-c", command], {**CRON, "HOME": str(place)}, place.parent)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")  # no mail is sent
    assert json.loads((place / "last.json").read_text())["accepted"] == 200
    assert re.fullmatch(r"nightly-\d{4}-\d\d-\d\d", the_run(place).name)
    last = json.loads((place / "nightly.log").read_text().splitlines()[-1])
    assert (last["event"], last["exit_code"]) == ("end", 0)
    assert "edgen_exit_code" in (place / "metrics" / "edgen.prom").read_text()
    # A second one appends to the log, makes no call, and its errors are mailed.
    assert run(["/bin/sh", "-c", command], {**CRON, "HOME": str(place)}).returncode == 0
    assert json.loads((place / "last.json").read_text())["calls"]["now"] == 0
    (place / "jobs" / "nightly.yaml").write_text("name: [")
    ended = run(["/bin/sh", "-c", command], {**CRON, "HOME": str(place)})
    assert "edgen ended with 2" in ended.stdout


def test_the_keys_of_the_file_reach_the_command(place: Path) -> None:
    for line in crontab_lines():
        command = here(command_of(line), place)
        before, _, _ = command.partition(".venv/bin/edgen")
        ended = run(["/bin/sh", "-c", f"{before} env"], {**CRON, "HOME": "/"})
        assert "OPENAI_API_KEY=sk-of-the-file" in ended.stdout.splitlines()


def test_the_line_for_batches_is_understood(place: Path) -> None:
    command = here(command_of(crontab_lines()[1]), place).replace("--via batch", "--via online")
    ended = run(["/bin/sh", "-c", command], {**CRON, "HOME": "/"})
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert "accepted   200" in (place / "last.txt").read_text()
    assert run(["/bin/sh", "-n", "-c", command_of(crontab_lines()[1])], CRON).returncode == 0


# -- systemd


def units(place: Path) -> tuple[Path, Path]:
    service, timer = (
        here((EXAMPLES / f"edgen-nightly.{kind}").read_text(), place) for kind in ("service", "timer")
    )
    (place / "edgen-nightly.service").write_text(service)
    (place / "edgen-nightly.timer").write_text(timer)
    return place / "edgen-nightly.service", place / "edgen-nightly.timer"


def parsed(unit: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit)
    return parser


def test_the_service_starts_what_it_says(place: Path) -> None:
    service = parsed(units(place)[0])["Service"]
    environ = dict([service["Environment"].split("=", 1)])
    for line in Path(service["EnvironmentFile"]).read_text().splitlines():
        environ |= dict([line.split("=", 1)])
    assert "%" not in service["ExecStart"]
    ended = run(service["ExecStart"].split(), environ, Path(service["WorkingDirectory"]))
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stderr.splitlines()[-1])["exit_code"] == 0
    assert int(service["TimeoutStopSec"]) > 30
    assert service["SuccessExitStatus"] == "4"


def test_systemd_takes_the_units(place: Path) -> None:
    if shutil.which("systemd-analyze") is None:  # systemd's own check runs only where systemd is installed
        return
    service, timer = units(place)
    environ = {"PATH": os.environ["PATH"], "SYSTEMD_UNIT_PATH": f"{place}:"}
    ended = run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(service), str(timer)], environ
    )
    said = [line for line in ended.stderr.splitlines() if "edgen" in line]
    assert ended.returncode == 0, ended.stderr
    assert said == []
    calendar = run(["systemd-analyze", "calendar", parsed(timer)["Timer"]["OnCalendar"]], environ)
    assert calendar.returncode == 0
    assert "Normalized form: *-*-* 01:15:00" in calendar.stdout
    # This proves that a mistake would be found:
    timer.write_text(timer.read_text().replace("*-*-*", "*-*-99"))
    ended = run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(timer)], environ)
    assert "Failed to parse calendar specification" in ended.stderr


# -- GitHub Actions


def workflow() -> tuple[str, dict[str, Any]]:
    text = (EXAMPLES / "github-actions.yml").read_text()
    return text, yaml.safe_load(text)


def test_the_workflow_is_one(tmp_path: Path) -> None:
    check_jsonschema = importlib.import_module("check_jsonschema").main
    text, _ = workflow()
    path = tmp_path / "nightly.yml"
    for written, code in ((text, 0), (text.replace("runs-on:", "run-on:"), 1)):
        path.write_text(written)
        with pytest.raises(SystemExit) as ended:
            check_jsonschema(["--builtin-schema", "vendor.github-workflows", str(path)])
        assert ended.value.code == code


@pytest.mark.parametrize(
    ("more", "code", "said"), [("", 0, ""), ("--for 1s", 0, "::warning::"), ("--set asks=x", 2, "")]
)
def test_the_workflows_steps_run(place: Path, more: str, code: int, said: str) -> None:
    _, value = workflow()
    steps = {step.get("name"): step for step in value["jobs"]["generate"]["steps"]}
    script = steps["Generate"]["run"]
    # All paid answers are kept for any end of the step.
    assert steps["Keep what was answered"]["if"] == "always()"
    assert "${{" not in script  # the value of an expression is never part of a script
    if more:
        script = script.replace("--for 5h", more if more.startswith("--for") else f"--for 5h {more}")
    if said:
        slow = "backends: {default: {type: simulator, latency_ms: 400}}\nlimits: {in_flight: 4}\n"
        text = (place / "jobs" / "nightly.yaml").read_text()
        (place / "jobs" / "nightly.yaml").write_text(text[: text.index("backends:")] + slow)
    environ = {"PATH": f"{place}/.venv/bin:/usr/bin:/bin", "HOME": str(place), "OPENAI_API_KEY": ""}
    ended = run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], environ, place)
    assert ended.returncode == code, ended.stderr
    assert said in ended.stdout
    assert value["jobs"]["generate"]["timeout-minutes"] > 5 * 60


# -- Airflow


def test_the_airflow_command_runs(place: Path) -> None:
    tree = ast.parse((EXAMPLES / "airflow_dag.py").read_text())
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    (operator,) = (call for call in calls if call.func.id == "BashOperator")  # type: ignore[attr-defined]
    given = {word.arg: word.value for word in operator.keywords}
    template = ast.literal_eval(given["bash_command"])
    command = (
        jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(template).render(ds="2027-01-31")
    )
    ended = run(["bash", "-c", here(command, place)], {**CRON, "HOME": str(place)}, place)
    assert ended.returncode == 0, ended.stderr
    assert the_run(place).name == "nightly-2027-01-31"
