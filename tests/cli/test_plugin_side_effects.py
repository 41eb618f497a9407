"""Plugins that act outside of their methods' return values: threads, tasks, standard files, the files of an
export, names, and values without end. Each is named, nothing is lost, and edgen's own output stays whole."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edgen.cli.export import _make_format_options
from edgen.core.plugins import faults
from edgen.export import format as format_module
from tests import ROOT
from tests.cli.command import Command
from tests.cli.odd_plugins import (
    FORMAT,
    PROTOCOL,
    PROVIDER,
    Site,
    calls_made,
    error_of,
    job,
    made_run,
    measure,
    run,
    site,
)
from tests.cli.test_plugin_mistakes import ASKER

__all__ = ["job", "made_run", "run", "site"]

ODD = ("--set", "backends={default: {type: odd}}")
WORKS = "return Reply('Teacher: Hi.\\nStudent: Yes.')"
ROW = "yield Row(one.split, {'id': one.candidate.id}"
WITHOUT_TEXT = """
class Bad(Exception):
    def __str__(self): raise ValueError("no text")
    __repr__ = __str__
"""
CANCELS = """import asyncio
        for task in asyncio.all_tasks(): task.cancel()
        await asyncio.sleep(0)
        """


def answer(*lines: str) -> str:
    """Return a provider that runs these lines and then answers."""
    return PROVIDER.replace("ANSWER", "\n        ".join((*lines, WORKS.replace("\n", "\\n"))))


def make_format(rows: str, more: str = "") -> str:
    return FORMAT.replace("ROWS", rows).replace("MORE", more)


class TestBackground:
    """Errors that no caller of a plugin sees."""

    @pytest.mark.parametrize(
        ("lines", "said"),
        [
            (("import threading; t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()",), "raised ZeroDivisionError: division by zero in a thread that it started ("),
            (("import asyncio", "async def lose(): raise KeyError('x')", "asyncio.create_task(lose())", "await asyncio.sleep(0)"), "raised KeyError: 'x' in a task that it started and did not await ("),
            (("import asyncio", "asyncio.get_running_loop().call_soon(lambda: 1 / 0)", "await asyncio.sleep(0)"), "raised ZeroDivisionError: division by zero in a callback ("),
            (("class Last:", "    def __del__(self): 1 / 0", "Last()"), "raised ZeroDivisionError: division by zero when its object was destroyed ("),
        ],
    )  # fmt: skip
    def test_it_is_reported_once_and_the_run_continues(
        self, command: Command, site: Site, job: Path, tmp_path: Path,
        caplog: pytest.LogCaptureFixture, lines: tuple[str, ...], said: str,
    ) -> None:  # fmt: skip
        site.add("providers", "odd", answer(*lines))
        with caplog.at_level(logging.WARNING, "edgen"):
            ended = command("generate", job, *ODD, "-o", tmp_path / "run", "--json")
        assert ended.code == 0, ended.err
        assert json.loads(ended.out)["accepted"] == 12
        assert caplog.text.count(f"The provider 'odd' of odd-pack 1.0 {said}") == 1
        assert caplog.text.count("The command continues.") == 1

    def test_a_generator_that_yields_after_it_is_closed(
        self, command: Command, site: Site, job: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        work = """if scenario.index == 11: raise ValueError('no')
        first = next(work)
        try: reply = yield first
        except GeneratorExit: yield first"""
        site.add("protocols", "odd", PROTOCOL.replace("WORK", work))
        ended = command("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run")
        assert ended.code == 2, ended.err
        assert "The protocol 'odd' of odd-pack 1.0 raised" in ended.err
        assert "bug in edgen" not in ended.err

    @pytest.mark.parametrize("error", ["SystemExit(0)", "KeyboardInterrupt"])
    def test_a_task_that_ends_the_interpreter(
        self, command: Command, site: Site, job: Path, tmp_path: Path, error: str
    ) -> None:
        lines = ("import asyncio", f"async def end(): raise {error}", "asyncio.create_task(end())")
        site.add("providers", "odd", answer(*lines, "await asyncio.sleep(0)"))
        ended = command("generate", job, *ODD, "-o", tmp_path / "run")
        assert ended.code == 2, ended.err
        assert f"The provider 'odd' of odd-pack 1.0 raised {error.partition('(')[0]}" in ended.err


class TestCancelledTasks:
    def test_by_a_provider_late(self, command: Command, site: Site, job: Path, tmp_path: Path) -> None:
        site.add(
            "providers",
            "odd",
            answer(
                f"if request.address.scenario == 5:\n          {CANCELS.replace('        ', '          ')}"
            ),
        )
        made = ("generate", job, *ODD, "-o", tmp_path / "run", "--set", "limits.in_flight=1")
        ended = command(*made)
        assert ended.code == 2, ended.err
        place = f"({site.folder / 'odd_pack.py'}, line "
        assert (
            f"The provider 'odd' of odd-pack 1.0 cancelled tasks of edgen, in place of its own {place}"
            in ended.err
        )
        assert "interrupted" not in ended.err
        before = calls_made(command, tmp_path / "run")
        site.replace(answer())
        assert json.loads(command(*made, "--json").out)["accepted"] == 12
        assert calls_made(command, tmp_path / "run") <= before + 7, "stored answers are used"

    def test_by_a_protocol_and_in_doctor(
        self, command: Command, site: Site, job: Path, tmp_path: Path
    ) -> None:
        stops = CANCELS.partition("await")[0].rstrip()
        site.add("protocols", "odd", PROTOCOL.replace("WORK", f"{stops}\n        return (yield from work)"))
        ended = command("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run")
        assert ended.code == 2, ended.err
        assert "The protocol 'odd' of odd-pack 1.0 cancelled tasks of edgen" in ended.err

    def test_of_others_alone(self, command: Command, site: Site, job: Path, tmp_path: Path) -> None:
        others = """import asyncio
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            try: task.cancel()
            except Exception: pass"""
        site.add("providers", "odd", answer(others))
        ended = command("generate", job, *ODD, "-o", tmp_path / "run")
        assert ended.code == 2, ended.err
        assert "The provider 'odd' of odd-pack 1.0 cancelled tasks of edgen" in ended.err


class TestStandardFiles:
    @pytest.mark.parametrize(
        ("new", "late"), [("None", False), ("io.StringIO()", False), ("io.StringIO()", True)]
    )
    def test_results_are_printed_where_the_command_began(
        self, command: Command, site: Site, job: Path, tmp_path: Path, new: str, late: bool
    ) -> None:
        takes = f"import io, sys; sys.stdout = sys.stderr = {new}"
        site.add("providers", "odd", answer(takes) if late else f"{takes}\n{answer()}")
        with pytest.MonkeyPatch.context() as kept:
            kept.setattr("sys.stdout", sys.stdout)
            kept.setattr("sys.stderr", sys.stderr)
            ended = command("generate", job, *ODD, "-o", tmp_path / "run")
        assert ended.code == 0
        assert "accepted   12" in ended.out
        assert "12 accepted" in ended.err

    @pytest.mark.integration
    def test_a_partition_and_its_prints(self, site: Site, job: Path, tmp_path: Path) -> None:
        site.add("providers", "odd", f"print('loaded')\n{answer('print(request.role)')}")
        made = ("generate", job, *ODD, "--set", "partitions=2", "-o", tmp_path / "run", "--json")
        environ = {**os.environ, "PYTHONPATH": f"{site.folder}{os.pathsep}{ROOT}"}
        words = [sys.executable, "-m", "edgen", *map(str, made)]
        ended = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["accepted"] == 12
        assert ended.stderr.count("default\n") == 12


@pytest.mark.parametrize(
    ("group", "code", "words", "said"),
    [
        ("protocols", PROTOCOL.replace("WORK", "raise Bad()\n        yield"), ("generate", "JOB", "--set", "protocol=odd", "-o", "OUT"), "raised Bad ("),
        ("measures", measure("Mean('n')", "{}").replace("return {}", "raise Bad()"), ("stats", "RUN", "--only", "odd"), "raised Bad for conversation"),
        ("measures", "raise Bad()", ("stats", "RUN", "--only", "odd"), "cannot be loaded (Bad) in"),
        ("protocols", PROTOCOL.replace("WORK", "raise MemoryError\n        yield"), ("generate", "JOB", "--set", "protocol=odd", "-o", "OUT"), "raised MemoryError ("),
    ],
)  # fmt: skip
def test_an_error_without_a_text(
    command: Command, site: Site, run: Path, job: Path, tmp_path: Path,
    group: str, code: str, words: tuple[str, ...], said: str,
) -> None:  # fmt: skip
    site.add(group, "odd", WITHOUT_TEXT + code)
    places = {"RUN": run, "JOB": job, "OUT": tmp_path / "out"}
    ended = command(*(places.get(one, one) for one in words))
    assert ended.code == 2, ended.err
    assert f"The {group.removesuffix('s')} 'odd' of odd-pack 1.0 {said}" in ended.err


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("more: object = object()", "field `more` has the default <object object at"),
        ("more: float = float('nan')", "field `more` has the default nan, which no job can hold"),
        ("more: int = 'many'", "field `more` has the default 'many', which no job can hold"),
        ("price: str = 'x'", "field `price` has the default 'x', which no job can hold"),
        ("more: 'Missing' = 5", "has a `Config` whose types cannot be read (NameError: "),
    ],
)
def test_settings_that_no_job_can_hold(command: Command, site: Site, field: str, said: str) -> None:
    site.add("providers", "odd", answer().replace('model: str = "odd"', f'model: str = "odd"\n    {field}'))
    assert said in error_of(command, "odd")


def test_settings_that_no_other_process_can_import(command: Command, site: Site) -> None:
    local = "def make():\n    class C(OddConfig, frozen=True, kw_only=True, tag_field='type', tag='odd'): pass\n    return C\n"
    code = (
        answer()
        .replace("class Odd(", f"{local}\nclass Odd(")
        .replace("Config = Odd", "Config = make() or Odd")
    )
    site.add("providers", "odd", code)
    assert "has a `Config` inside of a function (make.<locals>.C)" in error_of(command, "odd")


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (
            "more: int = 'many'",
            "field `more` has the default 'many', which no flag can give (ValidationError",
        ),
        ("more: float = float('nan')", "field `more` has the default nan, which no flag can give"),
    ],
)
def test_options_with_wrong_defaults(command: Command, site: Site, field: str, said: str) -> None:
    options = f"class Options(FormatOptions, frozen=True, kw_only=True):\n    {field}\n"
    code = make_format(f"{ROW})", "Options=Options")
    site.add("formats", "odd", f"from edgen.plugin import FormatOptions\n{options}{code}")
    assert f"has `Options` whose {said}" in error_of(command, "odd")


def test_an_option_with_the_name_of_another_formats(
    command: Command, site: Site, run: Path, tmp_path: Path
) -> None:
    fields = "    masks: int = 5\n    csv_safe: str = 'a'\n"
    options = f"class Options(FormatOptions, frozen=True, kw_only=True):\n{fields}"
    row = "yield Row(one.split, {'id': str(chat.own.masks)})"
    site.add(
        "formats",
        "odd",
        f"from edgen.plugin import FormatOptions\n{options}{make_format(row, 'Options=Options')}",
    )
    _make_format_options.cache_clear()
    for words in (("odd", "--masks", 6), ("trl-sft", "--no-masks"), ("csv", "--no-csv-safe")):
        ended = command("export", run, "--to", *words, "-o", tmp_path / words[0])
        assert ended.code == 0, ended.err
    assert (tmp_path / "odd" / "train.jsonl").read_text().startswith('{"id":"6"}')
    _make_format_options.cache_clear()


@pytest.mark.parametrize("model", ["''", "'a\\ud800'"])
def test_a_model_that_no_record_can_name(
    command: Command, site: Site, job: Path, tmp_path: Path, model: str
) -> None:
    site.add("providers", "odd", answer().replace('model = "odd"\n    id', f"model = {model}\n    id"))
    ended = command("generate", job, *ODD, "-o", tmp_path / "run")
    assert ended.code == 2
    assert (
        f"The provider 'odd' of odd-pack 1.0 has the `model` {model}, which no record can name" in ended.err
    )


class TestExport:
    @pytest.mark.parametrize(
        "path", ["../escaped", "a/../../escaped", "/dev/null/escaped", "a/b/c", "", "a\\\\b"]
    )
    def test_a_file_outside_of_its_folder(
        self, command: Command, site: Site, run: Path, tmp_path: Path, path: str
    ) -> None:
        site.add("formats", "odd", make_format(f"{ROW}, files={{'{path}': 'x'}})"))
        ended = command("export", run, "--to", "odd", "-o", tmp_path / "out")
        assert ended.code == 2, ended.out
        assert "The format 'odd' of odd-pack 1.0 raised ValueError: " in ended.err
        assert "is not a path in the export's folder" in ended.err
        assert {one.name for one in tmp_path.iterdir()} == {"run", "site"}

    @pytest.mark.parametrize("name", ["README.md", "train.jsonl", "croissant.json"])
    def test_a_file_in_place_of_the_exports_own(
        self, command: Command, site: Site, run: Path, tmp_path: Path, name: str
    ) -> None:
        site.add("formats", "odd", make_format(f"{ROW}, files={{'{name}': 'x'}})"))
        ended = command("export", run, "--to", "odd", "-o", tmp_path / "out")
        assert ended.code == 2, ended.out
        assert f"raised ValueError: '{name}' is another file of the export" in ended.err

    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            (f"{ROW}, evidence='x')", "gave a Row whose `evidence` is a str: 'x'"),
            (f"{ROW}, scenario=5)", "gave a Row whose `scenario` is an int: 5"),
            (f"{ROW}, files=['x'])", "gave a Row whose `files` is a list: ['x']"),
            ("yield LeftOut('x' * 100_000)", "which is not a name such as too_long"),
            (f"\n        while True: {ROW})", "gave 50 rows for 12 conversations and did not end"),
        ],
    )
    def test_an_item_that_cannot_be_used(
        self, command: Command, site: Site, run: Path, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch, rows: str, said: str,
    ) -> None:  # fmt: skip
        monkeypatch.setattr(format_module, "LEAST_ITEMS", 50)
        monkeypatch.setattr(format_module, "_MOST_ITEMS", 1)
        site.add("formats", "odd", make_format(rows))
        ended = command("export", run, "--to", "odd", "-o", tmp_path / "out")
        assert ended.code == 2, ended.out
        assert f"The format 'odd' of odd-pack 1.0 {said}" in ended.err or said in ended.err
        assert len(ended.err) < 2_000
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ('tables={"id": "the conversation"}', "tables=lambda space: 5", "returned 5 from `tables`, which is not a DataTable"),
            ('tables={"id": "the conversation"}', "tables=(1, 2)", "has 1 among its `tables`, which is not a DataTable"),
            ("MORE", "layout=FormatLayout(files=lambda staging: None)", "returned None, a NoneType, not RowFiles from `layout.files`"),
            ("MORE", "layout=FormatLayout(files=5)", "has a `layout` whose `files` cannot be called: 5"),
        ],
    )  # fmt: skip
    def test_a_declaration_that_cannot_be_used(
        self, command: Command, site: Site, run: Path, tmp_path: Path, old: str, new: str, said: str
    ) -> None:
        code = FORMAT.replace("ROWS", f"{ROW})").replace(old, new).replace("MORE", "")
        site.add("formats", "odd", "from edgen.export.format import FormatLayout\n" + code)
        ended = command("export", run, "--to", "odd", "-o", tmp_path / "out")
        assert ended.code == 2, ended.out
        assert f"The format 'odd' of odd-pack 1.0 {said}" in ended.err


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("{'n': itertools.repeat('x')}", "gave more than 100,000 values in the column 'n'"),
        (
            "{str(i): 1 for i in range(1_001)}",
            "gave more than 1,000 columns, for conversation small-000000-r0",
        ),
    ],
)
def test_columns_without_end(command: Command, site: Site, run: Path, columns: str, said: str) -> None:
    site.add("measures", "odd", "import itertools\n" + measure("Tally('n')", columns))
    ended = command("stats", run, "--only", "odd")
    assert ended.code == 2
    assert f"The measure 'odd' of odd-pack 1.0 {said}" in ended.err


def test_sums_without_end(
    command: Command, site: Site, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "_MOST_ITEMS", 50)
    method = "    def sums(self, sample, space):\n        while True: yield ('a', 1)"
    code = measure("Mean('n')", "{'n': 1}", method, "OwnComparisons, ")
    site.add("measures", "odd", "from edgen.plugin.measures import OwnComparisons\n" + code)
    ended = command("compare", run, shutil.copytree(run, tmp_path / "other"))
    assert ended.code == 2
    assert "The measure 'odd' of odd-pack 1.0 gave 50 times a sum and did not end" in ended.err


class TestAsker:
    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("    def ask(", "    def list_units(self):\n        while True: yield from super().list_units()\n\n    def ask(", "of odd-pack 1.0 gave the unit (0, 'r0@0000') after (11, "),
            ("return self.question(unit, shown, read)", "yield 5", "of odd-pack 1.0 yielded an int, not a Request"),
            ("return self.question(unit, shown, read)", "while True: yield from self.question(unit, shown, read)", "asked far more requests about one unit than its `count_calls` gives"),
            ("    def ask(", "    def keep(self, *given): return None\n\n    def ask(", "of odd-pack 1.0 returned None, a NoneType, not a record from `keep`"),
            ("    template", "    role = 5\n    template", "has the `role` 5, which is not text"),
            ("variables = FENCED", "variables = 5", "has `variables` that are not a collection of names: 5"),
            ("    def ask(", "    def __init__(self): pass\n\n    def ask(", "has an `__init__` that cannot be called as `__init__(reader, job, answerer)`"),
        ],
    )  # fmt: skip
    def test_it_is_named(
        self, command: Command, site: Site, run: Path,
        monkeypatch: pytest.MonkeyPatch, old: str, new: str, said: str,
    ) -> None:  # fmt: skip
        monkeypatch.setattr("edgen.asking.asker.LEAST_REQUESTS", 2)
        monkeypatch.setattr("edgen.asking.asker._SLACK", 1)
        assert old in ASKER
        site.add("askers", "odd", ASKER.replace(old, new))
        (site.folder / "odd.j2").write_text("Is this polite? {{ fence }} {{ guarded }}")
        ended = command("annotate", run, "--write", "odd")
        assert ended.code == 2, ended.err
        assert "The asker 'odd'" in ended.err
        assert said in ended.err


@pytest.mark.parametrize("name", ["../odd", "/odd", ".odd", "o" * 101])
def test_a_name_that_no_file_can_have(command: Command, site: Site, run: Path, name: str) -> None:
    site.add("askers", name, ASKER.replace('"odd"', repr(name)))
    ended = command("annotate", run, "--write", name)
    assert ended.code == 2, ended.err
    assert f"The asker {name!r} of odd-pack 1.0 has a name that no file can have" in ended.err
    assert [one.name for one in run.parent.iterdir() if "odd" in one.name] == []


@pytest.mark.parametrize("group", ["commands", "space_commands"])
def test_a_command_that_is_none(
    command: Command, site: Site, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    site.add(group, "odd", "class IT:\n    name = 'odd'\n")
    ended = command(*(("space",) if group == "space_commands" else ()), "--help")
    assert ended.code == 0, ended.err
    assert "bug in edgen" not in ended.err + caplog.text


def test_a_prompt_of_another_protocol_is_noted(command: Command, job: Path) -> None:
    job.write_text(job.read_text() + "prompts: {closing: closing_student}\n")
    note = "`prompts.closing` is never used: the oneshot protocol asks with no such template."
    assert note in command("preview", job).err
