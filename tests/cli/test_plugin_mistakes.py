"""Mistakes of plugin authors that once ended in a traceback, in silence, or without the plugin's name."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgen.core import registry
from edgen.core.values import Conversation
from edgen.plugin import Mean, Measure, figure_kinds
from edgen.protocols.oneshot import Oneshot
from edgen.testing import ConformanceError, check_measure, check_protocol
from tests import ROOT
from tests.cli.command import Command
from tests.cli.odd_plugins import (
    FAMILY,
    FORMAT,
    PROTOCOL,
    PROVIDER,
    Site,
    error_of,
    job,
    made_run,
    measure,
    run,
    site,
)

__all__ = ["job", "made_run", "run", "site"]

ODD = ("--set", "backends={default: {type: odd}}")
WORKS = "return Reply('Teacher: Hi.\\nStudent: Yes.')"
GOES = PROTOCOL.replace("WORK", "return (yield from work)")
FINE = FORMAT.replace("ROWS", "yield Row(one.split, {'id': one.candidate.id})").replace("MORE", "")


def add_method(code: str, method: str) -> str:
    return code.replace("\nIT =", f"\n    {method}\n\nIT =")


class TestKeyboardInterrupt:
    @pytest.mark.parametrize(
        ("group", "code", "arguments", "said"),
        [
            ("measures", measure("Mean('n')", "{}").replace("return {}", "raise KeyboardInterrupt"), ("stats", "RUN"), "raised KeyboardInterrupt for conversation small-000000-r0"),
            ("formats", FINE.replace("yield Row", "raise KeyboardInterrupt\n        yield Row"), ("export", "RUN", "--to", "odd", "-o", "OUT"), "raised KeyboardInterrupt"),
            ("measures", "raise KeyboardInterrupt\n", ("stats", "RUN", "--only", "odd"), "cannot be loaded (KeyboardInterrupt)"),
            ("protocols", add_method(GOES, "def templates(self, job, space): raise KeyboardInterrupt"), ("preview", "JOB", "--set", "protocol=odd"), "raised KeyboardInterrupt"),
        ],
    )  # fmt: skip
    def test_it_is_the_plugins_if_its_code_raises_it(
        self, command: Command, site: Site, run: Path, job: Path, tmp_path: Path,
        group: str, code: str, arguments: tuple[str, ...], said: str,
    ) -> None:  # fmt: skip
        site.add(group, "odd", code)
        places = {"RUN": run, "JOB": job, "OUT": tmp_path / "out"}
        ended = command(*(places.get(one, one) for one in arguments))
        assert ended.code == 2, ended.err
        assert f"The {group.removesuffix('s')} 'odd' of odd-pack 1.0 {said}" in ended.err

    @pytest.mark.skipif(sys.platform == "win32", reason="it sends a signal")
    @pytest.mark.parametrize("again", ["pass", "raise", "raise error"])
    def test_it_is_the_persons_if_they_press_ctrl_c(
        self, site: Site, run: Path, tmp_path: Path, again: str
    ) -> None:
        begun = tmp_path / "begun"
        busy = f"open({str(begun)!r}, 'w').close()\n        try:\n            while True: pass"
        busy += f"\n        except KeyboardInterrupt as error: {again}\n        return {{'n': 1}}"
        if again == "pass":
            busy = busy.replace("while True: pass", "import signal; signal.pause()").replace(
                ": pass", ": raise"
            )
        site.add("measures", "odd", measure("Mean('n')", "{}").replace("return {}", busy))
        words = [sys.executable, "-m", "edgen", "stats", str(run), "--only", "odd"]
        environ = {**os.environ, "PYTHONPATH": f"{site.folder}{os.pathsep}{ROOT}"}
        with subprocess.Popen(words, env=environ, stderr=subprocess.PIPE, text=True) as process:
            while not begun.exists() and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate()
        last = said.strip().splitlines()[-1]
        assert process.returncode == 130
        assert last.startswith("edgen: interrupted. The measure 'odd' of odd-pack 1.0 (")
        assert last.endswith("in of_one) was running.")


STOPS = "asyncio.get_running_loop().stop()"


class TestStoppedLoop:
    def test_by_a_provider(self, command: Command, site: Site, job: Path, tmp_path: Path) -> None:
        answer = f"import asyncio; {STOPS}; await asyncio.sleep(0); {WORKS}"
        site.add("providers", "odd", PROVIDER.replace("ANSWER", answer))
        for words in (("generate", job, *ODD, "-o", tmp_path / "run"), ("doctor", job, *ODD)):
            ended = command(*words)
            assert ended.code == 2, ended.err
            said = "provider 'odd' of odd-pack 1.0 raised RuntimeError: edgen's event loop was stopped"
            assert said in ended.err + ended.out

    def test_by_a_protocol(self, command: Command, site: Site, job: Path, tmp_path: Path) -> None:
        site.add(
            "protocols", "odd", PROTOCOL.replace("WORK", f"import asyncio; {STOPS}; return (yield from work)")
        )
        ended = command("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run")
        assert ended.code == 2, ended.err
        assert "The protocol 'odd' of odd-pack 1.0 raised RuntimeError: edgen's event loop" in ended.err


@pytest.mark.parametrize(
    ("example", "said"),
    [
        ("('nobody', 'x')", "gave the conversation 'nobody' as an example, which is not in the run"),
        ("('nobody',)", "gave the example ('nobody',), not an (id, why) of two texts"),
    ],
)
def test_an_example_that_a_report_cannot_show(
    command: Command, site: Site, run: Path, example: str, said: str
) -> None:
    method = f"    def examples(self, value): yield {example}"
    site.add("measures", "odd", measure("Mean('n')", "{'n': 1}", method, "OwnTexts, "))
    ended = command("report", run)
    assert ended.code == 0, ended.err
    page = (run / "report.html").read_text().replace("&#39;", "'")
    assert f"Not measured: odd. The measure 'odd' of odd-pack 1.0 {said}" in page


@pytest.mark.parametrize("said", ["it is not UTF-8", "Is a directory"])
def test_entry_points_that_cannot_be_read(
    command: Command, site: Site, run: Path, caplog: pytest.LogCaptureFixture, said: str
) -> None:
    site.add("measures", "odd", measure("Mean('n')", "{'n': 1}"))
    (points,) = site.folder.glob("*.dist-info/entry_points.txt")
    text = points.read_text() + "# é\n"
    points.unlink()
    points.mkdir() if "directory" in said else points.write_bytes(text.encode("latin-1"))
    registry._index_plugins.cache_clear()
    assert command("stats", run, "--only", "lengths").code == 0
    assert f"{points}: this file of entry points cannot be read ({said})" in caplog.text


def test_entry_points_with_a_byte_order_mark(command: Command, site: Site, run: Path) -> None:
    site.add("measures", "odd", measure("Mean('n')", "{'n': 1}"))
    (points,) = site.folder.glob("*.dist-info/entry_points.txt")
    points.write_bytes(points.read_text().encode("utf-8-sig"))
    registry._index_plugins.cache_clear()
    assert "odd" in command("stats", run, "--only", "odd").out


def test_a_format_that_cannot_be_loaded_is_named_once(
    command: Command, site: Site, run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site.add("formats", "odd", "1 / 0\n")
    ended = command("export", run, "--to", "odd", "-o", tmp_path / "out")
    assert ended.code == 2
    told = ended.err + caplog.text
    assert told.count("cannot be loaded (ZeroDivisionError: division by zero) in ") == 1
    assert f"{site.folder / 'odd_pack.py'}, line 1" in told


@pytest.mark.parametrize("arms", ["", "arms: {a: {}, b: {asks: 2}}\n"])
def test_a_run_next_to_the_job_is_refused(
    command: Command, tmp_path: Path, job: Path, monkeypatch: pytest.MonkeyPatch, arms: str
) -> None:
    job.write_text(job.read_text() + arms)
    monkeypatch.chdir(tmp_path)
    ended = command("generate", "job.yaml", "-o", ".")
    assert ended.code == 2
    assert ".: this folder holds a job (job.yaml) and no run." in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["job.yaml"]


def test_a_template_that_no_protocol_asks_with_is_noted(command: Command, job: Path, tmp_path: Path) -> None:
    job.write_text(job.read_text() + "prompts: {student: selfplay_student}\n")
    note = "`prompts.student` is never used: the oneshot protocol asks with no such template."
    for words in (("preview", job), ("generate", job, "-o", tmp_path / "run")):
        assert note in command(*words).err
    job.write_text(
        job.read_text().replace("prompt: ", "arms: {a: {prompt: ").replace("ation\n", "ation}, b: {protocol: selfplay}}\n", 1)
    )  # fmt: skip
    assert "never used: the" not in command("preview", job).err


class TestProtocol:
    @pytest.mark.parametrize(
        ("work", "said"),
        [
            ("Conversation((made.turns[0], Turn('Elf', 'b')))", "a Conversation whose turn 1 has the role 'Elf', which the space does not have"),
            ("Conversation(made.turns, ended_by='Elf')", "a Conversation ended by 'Elf', which the space does not have"),
            ("Conversation(made.turns, events=({'event': 'x', 'turn': 0},))", "a Conversation with the event {'event': 'x', 'turn': 0}; an event is a dict"),
        ],
    )  # fmt: skip
    def test_a_conversation_that_no_record_holds(
        self, command: Command, site: Site, job: Path, tmp_path: Path, work: str, said: str
    ) -> None:
        site.add("protocols", "odd", PROTOCOL.replace("WORK", f"made = yield from work; return {work}"))
        ended = command("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run")
        assert ended.code == 2, ended.err
        assert f"The protocol 'odd' of odd-pack 1.0 returned {said}" in ended.err

    @pytest.mark.parametrize(
        ("verb", "method", "said"),
        [
            ("preview", "def templates(self, job, space): return {}", "returned no template from `templates`"),
            ("preview", "def templates(self, job, space): return {'default': Template(name='education_dialogue', key='prompt', file=None, expects='zzz', variables=(), asked='default')}", "expects 'zzz', which no `answers` has"),
            ("preview", "def opening(self, scenario, prompts, rules): return {'default': 'x'}", "returned messages by use from `opening` with a field of a wrong type"),
            ("estimate", "def opening(self, scenario, prompts, rules): return {'zzz': ()}", "returned 'zzz' from `opening`, and its `templates` have 'default' alone"),
            ("estimate", "def expected(self, job, level): return (ExpectedCall('default', 'zzz', (1, 2, 3)),)", "returned 'zzz' from `expected`"),
            ("estimate", "def expected(self, job, level): return (ExpectedCall('zzz', 'default', (1, 2, 3)),)", "returned the role 'zzz' from `expected`"),
            ("preview", "def opening(self, scenario, prompts, rules): return {}", "returned no messages for 'default', which `expected` has, from `opening`"),
            ("preview", "def roles(self, job): return ('teacher', 'default')\n    def expected(self, job, level): return (ExpectedCall('teacher', 'default', (1, 2, 3)),)", "and that template is for 'default': name a role of `roles` as `asked`, and the others in `also`"),
            ("preview", "async def start(self, scenario, replicate, prompts, rules): pass", "has an asynchronous `start`; write `def start`, without `async`"),
            ("preview", "def start(self, scenario): pass", "has a method `start` that cannot be called as `start(scenario, replicate, prompts, rules)`"),
            ("preview", "problems = 5", "has `problems` 5, where a method has to be"),
            ("preview", "def problems(self, job): return ['x']", "returned 'x', a str, not a Problem"),
        ],
    )  # fmt: skip
    def test_a_method_of_another_form(
        self, command: Command, site: Site, job: Path, verb: str, method: str, said: str
    ) -> None:
        imports = "from edgen.plugin import ExpectedCall, RolesAndSettings, Template\n"
        code = add_method(GOES.replace("(Oneshot,)", "(RolesAndSettings, Oneshot)"), method)
        site.add("protocols", "odd", imports + code)
        ended = command(verb, job, "--set", "protocol=odd")
        assert ended.code == 2, ended.err
        assert said in ended.err

    def test_a_first_request_of_another_type(
        self, command: Command, site: Site, job: Path, tmp_path: Path
    ) -> None:
        change = "messages=(Message('user', None),)"
        work = f"import msgspec; from edgen.plugin import Message; yield msgspec.structs.replace(next(work), {change})"
        site.add("protocols", "odd", PROTOCOL.replace("WORK", work))
        ended = command("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run")
        assert ended.code == 2, ended.err
        assert (
            "The protocol 'odd' of odd-pack 1.0 returned a Request with a field of a wrong type" in ended.err
        )


class TestProvider:
    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("async def aclose", "def aclose", "raised TypeError: object NoneType can't be used in 'await' expression in `aclose`"),
            ("return None", "return [5]", "returned a list of models, or None, from `models` with a field of a wrong type"),
            ("async def models", "def models", "raised TypeError: object NoneType can't be used in 'await' expression in `models`"),
            ("def create(self, config, key, link)", "def create(self, config)", "has a method `create` that cannot be called as `create(config, key, link)`"),
            ("    def create", "    def problems(self, config): return ['x']\n\n    def create", "returned 'x', a str, not a Problem"),
            ('identity = {"type": "odd"}', 'identity = property(lambda self: {"type": "odd", "it": id(object())  + len(vars(self)) + self.__dict__.setdefault(len(vars(self)), 1)})', "has another `identity` each time"),
        ],
    )  # fmt: skip
    def test_a_part_of_another_form(
        self, command: Command, site: Site, job: Path, old: str, new: str, said: str
    ) -> None:
        code = PROVIDER.replace("ANSWER", WORKS.replace("\n", "\\n"))
        assert old in code
        site.add("providers", "odd", code.replace(old, new))
        ended = command("doctor", job, *ODD)
        assert ended.code == 2, ended.err
        assert f"The provider 'odd' of odd-pack 1.0 {said}" in " ".join((ended.out + ended.err).split())


class TestMeasure:
    @pytest.mark.parametrize(
        ("code", "said"),
        [
            (measure("Mean('n', label='{x}')", "{'n': 1}"), "has {x} in the `label` of 'n'; there it may have {key}"),
            (measure("Mean('n', label='n', says='{m}')", "{'n': 1}"), "has {m} in the `says` of 'n'"),
            (measure("Mean('n')", "{'n': 1}", "    figures = ['n']"), "has `figures` that are not a mapping: ['n']"),
            (measure("Mean('n')", "{'n': 1}", "    order = 'first'"), "has `order` 'first', which is not a number"),
            (measure("Mean('n')", "{'n': 1}", "    nothing = None"), "has `nothing` None, which is not text"),
            (measure("Mean('n')", "{'n': 1}", "    compares = ('x',)"), "has 'x' among its `compares`"),
            (measure("Mean('n')", "{'n': 1}", "    panels = 5"), "has `panels` that are not a tuple: 5"),
            (measure("Mean('n')", "{'n': 1}", "    from edgen.plugin.measures import Panel\n    panels = (Panel('p', 'P', ('m',)),)"), "has a Panel of 'm', which is not an aggregate of it (it has 'n')"),
            (measure("Mean('n')", "{'n': 1}", "    from edgen.plugin.measures import Panel\n    panels = (Panel('p', 'P', 'n'),)"), "has a Panel with `figures` 'n', a text; write ('n',)"),
            (measure("Mean('n')", "{'n': 1}", "    from edgen.plugin.measures import TablePanel\n    panels = (TablePanel('T', 'n', ('a', 'b'), ('{it}',)),)"), "has the TablePanel 'T' with more or fewer `cells` than `heads`"),
            (measure("Mean('n')", "{'n': 1}").replace("    def of_one", "    async def of_one"), "has an asynchronous `of_one`"),
            (measure("Mean('n')", "{'n': 1}").replace("(self, sample, words, space)", "(self, sample)"), "has a method `of_one` that cannot be called as `of_one(sample, words, space)`"),
        ],
    )  # fmt: skip
    def test_a_declaration_that_cannot_be_used(
        self, command: Command, site: Site, code: str, said: str
    ) -> None:
        site.add("measures", "odd", code)
        assert said in error_of(command, "odd")

    @pytest.mark.parametrize(
        ("aggregate", "columns", "row"),
        [
            ("Mean('n')", "{'n': 1}", "n                           1 [1, 1] of 12"),
            ("Share('n', of='all', by_key=True, label='those')", "{'n': {'a': 1}, 'all': {'a': 2}}", "those a                     50.0%"),
            ("Crossed('n', label='from')", "{'n': [('a', ['b', 'c'])]}", "from a                      b 100.0%, c 100.0% (of 12)"),
        ],
    )  # fmt: skip
    def test_a_row_for_each_figure_and_key(
        self, command: Command, site: Site, run: Path, aggregate: str, columns: str, row: str
    ) -> None:
        code = "from edgen.plugin.measures import Crossed\n" + measure(aggregate, columns)
        site.add("measures", "odd", code)
        ended = command("stats", run, "--only", "odd")
        assert ended.code == 0, ended.err
        assert row in ended.out

    @pytest.mark.parametrize("value", ["[('a', 'bc')]", "['ab']", "[('a', 5)]", "[(['a'], ['b'])]"])
    def test_columns_of_a_table_that_cannot_be_counted(
        self, command: Command, site: Site, run: Path, value: str
    ) -> None:
        code = "from edgen.plugin.measures import Crossed\n" + measure("Crossed('n')", f"{{'n': {value}}}")
        site.add("measures", "odd", code)
        ended = command("stats", run, "--only", "odd")
        assert ended.code == 2
        assert f"gave {value} in the column 'n', which is not a list of (row, a list of columns)" in ended.err

    def test_a_column_of_another_kind_than_it_says(self, command: Command, site: Site, run: Path) -> None:
        site.add("measures", "odd", measure("Tally('n')", "{'n': 'x'}", "    figures = {'n': 'number'}"))
        ended = command("select", run, "--where", "measures.odd.n > 1", "-o", run.parent / "chosen")
        assert ended.code == 2
        said = "The measure 'odd' of odd-pack 1.0 gave 'x' in the column 'n', which its `figures` say is a number"
        assert said in ended.err

    @pytest.mark.parametrize(
        ("method", "said"),
        [
            ("def sums(self, sample, space): return [('a', 'b')]", "gave ('a', 'b') in `sums`, not a (name, number)"),
            ("def compared(self, sums): return [5]", "returned 5 from `compared`, not a Compared"),
        ],
    )  # fmt: skip
    def test_a_comparison_that_cannot_be_made(
        self, command: Command, site: Site, run: Path, job: Path, tmp_path: Path, method: str, said: str
    ) -> None:
        assert command("generate", job, "-o", tmp_path / "other").code == 0
        code = measure("Mean('n')", "{'n': 1}", f"    {method}", "OwnComparisons, ")
        site.add("measures", "odd", "from edgen.plugin.measures import OwnComparisons\n" + code)
        ended = command("compare", run, tmp_path / "other")
        assert ended.code == 2
        assert f"The measure 'odd' of odd-pack 1.0 {said}" in ended.err

    @pytest.mark.parametrize("tile", ["('a',)", "(1, 2, 3)", "'abc'"])
    def test_a_tile_that_no_page_shows(self, command: Command, site: Site, run: Path, tile: str) -> None:
        method = f"    def tiles(self, value): yield {tile}"
        site.add("measures", "odd", measure("Mean('n')", "{'n': 1}", method, "OwnTexts, "))
        assert command("report", run).code == 0
        page = (run / "report.html").read_text().replace("&#39;", "'")
        assert f"The measure 'odd' of odd-pack 1.0 gave the tile {tile}, not (figure, what it is" in page

    def test_endless_lines(self, command: Command, site: Site, run: Path) -> None:
        method = "    def lines(self, value):\n        while True: yield 'x'"
        site.add("measures", "odd", measure("Mean('n')", "{'n': 1}", method, "OwnTexts, "))
        ended = command("stats", run, "--only", "odd")
        assert ended.code == 2
        assert "The measure 'odd' of odd-pack 1.0 gave more than 100,000 parts" in ended.err


def test_why_a_record_breaks_its_schema_is_kept(
    command: Command, site: Site, job: Path, tmp_path: Path
) -> None:
    work = "made = yield from work; return Conversation(made.turns, branch=-5)"
    site.add("protocols", "odd", PROTOCOL.replace("WORK", work))
    run = tmp_path / "run"
    assert command("generate", job, "--set", "protocol=odd", "-o", run).code == 3
    rejected = json.loads((run / "rejected.jsonl").read_text().splitlines()[0])
    assert rejected["detail"].startswith("the record breaks its schema conversation: $.provenance.branch")


ASKER = """
from pathlib import Path
import msgspec
from edgen.plugin.askers import TurnAsker
from edgen.plugin.protocols import FENCED, fence_turns, unread

class Polite(msgspec.Struct):
    polite: object

class IT(TurnAsker):
    name = "odd"
    template = str(Path(__file__).with_name("odd.j2"))
    variables = FENCED

    def ask(self, unit):
        shown = fence_turns(self.rules.seed, unit.address.scenario, unit.address.task, unit.turns)
        return self.question(unit, shown, read)

def read(reply):
    return Polite(True)
"""


class TestAsker:
    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("return Polite(True)", "return None", " of odd-pack 1.0 returned None, a NoneType, not a struct, or a Rejection"),
            ("Polite(True)", "Polite(float('nan'))", "from its reader with nan, which is not a finite number"),
            ("Polite(True)", "Polite(object())", "from its reader with a field of a wrong type"),
            ("return self.question(unit, shown, read)", "return [1]", " of odd-pack 1.0 returned [1], a list, not a generator from `ask`"),
            ("def ask(self, unit)", "async def ask(self, unit)", " has an asynchronous `ask`"),
            ("def ask(self, unit)", "def ask(self)", " has a method `ask` that cannot be called as `ask(unit)`"),
            ("    variables", "    list_places = lambda *_: [99]\n    variables", " of odd-pack 1.0 returned 99 from `list_places`; there are "),
            ("    variables", "    list_places = lambda *_: ['0']\n    variables", "returned '0', a str, not the place of a turn, or None, from `list_places`"),
            ("    variables", "    template = None\n    variables", " has the `template` None, which is neither a name nor a path"),
        ],
    )  # fmt: skip
    def test_nothing_wrong_is_stored(
        self, command: Command, site: Site, run: Path, old: str, new: str, said: str
    ) -> None:
        assert old in ASKER
        site.add("askers", "odd", ASKER.replace(old, new))
        (site.folder / "odd.j2").write_text("Is this polite? {{ fence }} {{ guarded }}")
        ended = command("annotate", run, "--write", "odd")
        assert ended.code == 2, ended.err
        assert "The asker 'odd'" in ended.err
        assert said in ended.err
        site.replace(ASKER)
        assert json.loads(command("annotate", run, "--write", "odd", "--json").out)["answered"] > 0

    def test_the_option_of_another_base_class(self, command: Command, site: Site, run: Path) -> None:
        site.add("askers", "odd", ASKER)
        ended = command("pairs", run, "--signal", "odd")
        assert ended.code == 2
        said = (
            "--signal: the asker 'odd' is a TurnAsker, and this option takes a JudgeAsker; name it with "
            "`edgen annotate --write`."
        )
        assert said in ended.err
        known = "--write: there is no 'odt' (did you mean 'odd'?); known: odd, paraphrases, wrong."
        assert known in command("annotate", run, "--write", "odt").err

    @pytest.mark.parametrize(
        ("code", "said"),
        [
            (ASKER.replace("    template", "    other"), "The asker 'odd' lacks `template`, which every asker has to define."),
            ("class IT:\n    name = 'odd'\n", "It is not a class that derives from one of edgen.plugin.askers."),
        ],
    )  # fmt: skip
    def test_the_list_says_why_one_is_unusable(
        self, command: Command, site: Site, code: str, said: str
    ) -> None:
        site.add("askers", "odd", code)
        listed = json.loads(command("list", "askers", "--json").out)["askers"]
        (odd,) = (one for one in listed if one["name"] == "odd")
        assert odd == {"name": "odd", "option": "", "summary": f"ERROR: {said}", "origin": "odd-pack 1.0"}


def test_the_check_of_a_protocol_records_its_conversation() -> None:
    class Branched(Oneshot):
        name = "branched"

        def start(self, *given: Any) -> Any:
            made = yield from super().start(*given)
            return msgspec.structs.replace(made, branch=-5) if isinstance(made, Conversation) else made

    with pytest.raises(ConformanceError, match="makes a record that breaks its schema conversation"):
        check_protocol(Branched())


def test_the_check_of_a_measure_looks_for_the_columns_of_its_figures() -> None:
    class Empty(Measure[Any]):
        name, definition, aggregates = "empty", "None.", (Mean("n"),)
        figures = figure_kinds("n", "m")

        def of_one(self, sample: Any, words: Any, space: Any) -> dict[str, float]:
            return {"n": 1.0}

    with pytest.raises(ConformanceError, match="no conversation has the column 'm', which"):
        check_measure(Empty())


def test_a_family_that_no_longer_reads_its_records(
    command: Command, site: Site, job: Path, tmp_path: Path
) -> None:
    code = FAMILY.replace("CHANGE", "pass")
    site.add("families", "swapped", code)
    run = tmp_path / "run"
    assert command("generate", job, "--set", "family=swapped", "-o", run).code == 0
    site.replace(FAMILY.replace("CHANGE", "raise ValueError('no')"))
    ended = command("show", run, "0")
    assert ended.code == 2
    said = "The family 'swapped' of odd-pack 1.0 raised ValueError: no for a record that satisfies its schema"
    assert said in ended.err
