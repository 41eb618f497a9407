"""Plugins that do not fit their kind, or return values that edgen cannot store or count: each is refused by
name and stops nothing else."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from edgen.cli.app import app
from edgen.core.errors import CallError
from edgen.core.plugins import faults
from edgen.core.plugins.faults import FaultyPluginError
from edgen.core.values import Reply
from edgen.execution.batch.results import check_lines
from edgen.export.format import TAKEN
from edgen.export.shared_options import ExportOptions
from edgen.providers.batches import LineResult
from tests.cli.command import Command
from tests.cli.odd_plugins import (
    FAMILY,
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

__all__ = ["job", "made_run", "run", "site"]

NAMED = "class Odd:\n    name = 'odd'\n\nIT = Odd()\n"
OPTIONS = "from edgen.plugin import FormatOptions\nclass Mine(FormatOptions, frozen=True):\n    FIELD\n"


@pytest.mark.parametrize(
    ("group", "code", "said"),
    [
        ("providers", NAMED, "is of the class Odd, which is not derived from edgen.plugin.Provider"),
        ("protocols", NAMED, "which is not derived from edgen.plugin.ConversationProtocol"),
        ("families", NAMED, "which is not derived from edgen.plugin.Family"),
        ("formats", NAMED, "which is not derived from edgen.plugin.Format"),
        ("measures", NAMED, "which is not derived from edgen.plugin.Measure"),
        ("providers", PROVIDER.replace("Odd()", "Odd"), "is a class, not an object; write `OBJECT = Odd()`"),
        ("providers", PROVIDER.replace("    Config = OddConfig\n", ""), "has no `Config`"),
        ("providers", PROVIDER.replace('tag="odd"', 'tag="other"'), 'and tag=\'other\'; write tag_field="type"'),
        ("protocols", PROTOCOL.replace("WORK", "return work").replace('"odd"\n', '"odd"\n    answers = None\n'),
         "has `answers` that are not a tuple of AnswerKind"),
        ("providers", PROVIDER.replace("    Config = OddConfig\n", "    Config = OddConfig\n    sees_pictures = True\n"),
         "defines `sees_pictures`, which belongs to RequestFeatures; derive from it as well: class Odd(RequestFeatures, Provider)"),
        ("protocols", PROTOCOL.replace("WORK", "return work").replace('"odd"\n', '"odd"\n    branches = True\n'),
         "defines `branches`, which belongs to RolesAndSettings; derive from it as well: class Odd(RolesAndSettings, Odd)"),
        ("families", FAMILY.replace("CHANGE", "pass").replace('"swapped"\n', '"odd"\n    more_findings = None\n'),
         "defines `more_findings`, which belongs to LayoutChecks; derive from it as well: class "),
        ("formats", OPTIONS.replace("FIELD", "to: str = ''") + FORMAT.replace("MORE", "Options=Mine").replace("ROWS", "pass"),
         "has an option `to`, and `edgen export` has an option --to of its own"),
        ("formats", OPTIONS.replace("FIELD", "level: int") + FORMAT.replace("MORE", "Options=Mine").replace("ROWS", "pass"),
         "has an option `level` without a default"),
        ("formats", FORMAT.replace("MORE", "Options=dict").replace("ROWS", "pass"),
         "has `Options` that are not a class derived from edgen.plugin.FormatOptions"),
        ("formats", FORMAT.replace("MORE", "notes=('Mine.',)").replace("ROWS", "pass"),
         "(TypeError: `notes` belongs to FormatCard; write card=FormatCard(notes=…))"),
        ("formats", FORMAT.replace("MORE", "layout={}").replace("ROWS", "pass"), "has a `layout` that is not a FormatLayout: {}"),
        ("formats", OPTIONS.replace("FIELD", "level: dict = {}") + FORMAT.replace("MORE", "Options=Mine").replace("ROWS", "pass"),
         "has `Options` that cannot become flags (TypeError: `level` has an unsupported type; use bool,"),
        ("formats", FORMAT.replace("MORE", "card=FormatCard(notes=(5,))").replace("ROWS", "pass"), "has `notes` that are not a tuple of texts: (5,)"),
        ("formats", FORMAT.replace("MORE", "card=FormatCard(reasons={'a': 5})").replace("ROWS", "pass"), "has `reasons` that are not a mapping from"),
        ("formats", FORMAT.replace("MORE", "needs='pairs'").replace("ROWS", "pass"), "has `needs` that are not a tuple of texts: 'pairs'"),
        ("measures", measure("Mean('n')", "{'n': 1}", "    def lines(self, value): yield 'x'"),
         "defines `lines`, which belongs to OwnTexts; derive from it as well"),
        ("measures", measure("Mean('n'), Histogram('n')", "{'n': 1}"), "has two aggregates named 'n'"),
        ("measures", measure("Mean('n')", "{'n': 1}", "    figures = {'n': 'fruit'}"), "has 'fruit' for 'n' in `figures`"),
        ("measures", measure("Mean('n')", "{}").replace("definition =", "other ="), "has no `definition`"),
        ("measures", "class Odd(BaseException): ...\nraise Odd('no')\n", "cannot be loaded (Odd: no)"),
    ],
)  # fmt: skip
def test_an_object_that_does_not_fit_is_refused_alone(
    command: Command,
    site: Site,
    run: Path,
    tmp_path: Path,
    group: str,
    code: str,
    said: str,
) -> None:
    site.add(group, "odd", code)
    assert said in error_of(command, "odd")
    for others in (("stats", run), ("validate", run), ("export", run, "--to", "hf", "-o", tmp_path / "hf")):
        ended = command(*others)
        assert ended.code == 0, ended.err
    assert command("export", "--help").code == 0


@pytest.mark.parametrize("text", ["{'type': 5}", "{"])
def test_a_schema_that_is_none(command: Command, site: Site, run: Path, tmp_path: Path, text: str) -> None:
    file = tmp_path / "own.schema.json"
    file.write_text(text.replace("'", '"'))
    site.add(
        "families",
        "swapped",
        FAMILY.replace("CHANGE", "pass").replace('"swapped"\n', f'"swapped"\n    schema = {str(file)!r}\n'),
    )
    assert f"has the schema {file}, which is not a JSON Schema" in error_of(command, "swapped")
    assert command("stats", run).code == 0


def test_no_option_of_a_format_has_a_name_of_the_command() -> None:
    from typer.main import get_command

    export = get_command(app).get_command(None, "export")  # type: ignore[attr-defined]
    own = {one.name for one in export.params} - {*ExportOptions.__struct_fields__}
    assert own - {"ctx"} <= TAKEN


@pytest.mark.parametrize(
    "answer",
    [
        "Reply('Teacher: Hi.\\\\nStudent: a\\\\ud800b')",
        "Reply('', refusal='no \\\\ud800', finish_reason='content_filter')",
        "Reply('Teacher: Hi.\\\\nStudent: Yes.', model='m\\\\udfff')",
    ],
)
def test_a_reply_with_a_lone_surrogate_is_stored(
    command: Command,
    site: Site,
    job: Path,
    tmp_path: Path,
    answer: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    faults._warn_of_surrogates.cache_clear()
    site.add(
        "providers", "odd", PROVIDER.replace("ANSWER", f"return {answer}".encode().decode("unicode_escape"))
    )
    odd, run = ("--set", "backends={default: {type: odd}}"), tmp_path / "run"
    with caplog.at_level(logging.WARNING, "edgen"):
        command("generate", job, *odd, "-o", run)
    assert "The provider 'odd' of odd-pack 1.0 returned a Reply with a lone surrogate" in caplog.text
    before = calls_made(command, run)
    assert before >= 12
    again = command("generate", job, *odd, "-o", run)
    assert "bug in edgen" not in again.err
    assert calls_made(command, run) == before, "every answer was stored"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("raise CallError('no kind', 'x')", "raised a CallError of the kind 'no kind', which is not an edgen.plugin.FailureKind"),
        (
            "raise CallError(FailureKind.RATE_LIMIT, 'x', retry_after=float('nan'))",
            "raised a CallError with `retry_after` nan, no number of seconds",
        ),
        ("return Reply('x', usage=Usage(-1, 5))", "returned a Reply with a negative number of tokens"),
        ("return Reply('x', tokens=(Token('x', float('nan')),))", "with nan, which is not a finite number"),
    ],
)  # fmt: skip
def test_a_reply_or_failure_that_no_ledger_holds(
    command: Command,
    site: Site,
    job: Path,
    tmp_path: Path,
    change: str,
    said: str,
) -> None:
    imports = (
        "from edgen.core.errors import CallError, FailureKind\nfrom edgen.core.values import Token, Usage\n"
    )
    site.add("providers", "odd", imports + PROVIDER.replace("ANSWER", change))
    ended = command("generate", job, "--set", "backends={default: {type: odd}}", "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert "The provider 'odd' of odd-pack 1.0" in ended.err
    assert said in ended.err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("return OddBackend()", "return None", "returned None from `create`, which has no `identity`"),
        (
            '{"type": "odd"}',
            '{"type": "even"}',
            "has an `identity` whose `type` is 'even'; it has to be 'odd'",
        ),
        ('model = "odd"\n    id', "model = 5\n    id", "returned 5, an int, not text as `model`"),
    ],
)
def test_a_backend_that_is_none(
    command: Command,
    site: Site,
    job: Path,
    tmp_path: Path,
    old: str,
    new: str,
    said: str,
) -> None:
    code = PROVIDER.replace("ANSWER", "return Reply('x')")
    assert old in code
    site.add("providers", "odd", code.replace(old, new))
    ended = command("generate", job, "--set", "backends={default: {type: odd}}", "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert f"The provider 'odd' of odd-pack 1.0 {said}" in ended.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (
            "def record(self, recorded): return b'{' + super().record(recorded)",
            "that is not JSON (JSON is malformed",
        ),
        ("def record(self, recorded): return b'{}'", "that breaks its schema conversation: $."),
    ],
)
def test_a_record_that_breaks_its_own_schema_stops_the_run(
    command: Command,
    site: Site,
    job: Path,
    tmp_path: Path,
    method: str,
    said: str,
) -> None:
    site.add(
        "families", "swapped", FAMILY.replace("CHANGE", "pass").replace("\nIT =", f"\n    {method}\n\nIT =")
    )
    limits = ("--set", "family=swapped", "--set", "limits.in_flight=1", "--set", "conversations=300")
    ended = command("generate", job, *limits, "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert "The family 'swapped' of odd-pack 1.0 made a record of conversation small-0000" in ended.err
    assert said in ended.err
    assert calls_made(command, tmp_path / "run") < 20  # of 300


def test_a_family_whose_file_is_missing_is_named(command: Command, site: Site, job: Path) -> None:
    method = "def fits(self, space): return bool(open('/no/such/words.txt'))"
    site.add(
        "families", "swapped", FAMILY.replace("CHANGE", "pass").replace("\nIT =", f"\n    {method}\n\nIT =")
    )
    ended = command("estimate", job, "--set", "family=swapped")
    assert ended.code == 2, ended.err
    assert "The family 'swapped' of odd-pack 1.0 raised FileNotFoundError" in ended.err


MOVED = """import msgspec
        place = (first := next(work)).address
        while True:
            place = msgspec.structs.replace(place, CHANGE)
            yield msgspec.structs.replace(first, address=place)"""


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ("raise StopIteration\n        yield", "generator raised StopIteration (PATH, line 10, in start)"),
        (
            "yield next(work)\n        raise StopIteration",
            "generator raised StopIteration (PATH, line 11, in start)",
        ),
        (
            "yield next(work)\n        return Conversation(())",
            "returned a Conversation without turns, not a Rejection",
        ),
        (
            MOVED.replace("CHANGE", "scenario=place.scenario + 1"),
            "yielded a request at the address of scenario 1 in scenario 0",
        ),
        (
            MOVED.replace("CHANGE", "step=place.step + 1"),
            "asked 500 requests in one conversation and did not end; its `expected` gives fewer",
        ),
    ],
)
def test_a_protocol_that_goes_astray(
    command: Command,
    site: Site,
    job: Path,
    tmp_path: Path,
    work: str,
    said: str,
) -> None:
    site.add("protocols", "odd", PROTOCOL.replace("WORK", work))
    small = ("--set", "protocol=odd", "--set", "limits.in_flight=1", "--set", "conversations=1")
    ended = command("generate", job, *small, "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert "The protocol 'odd' of odd-pack 1.0" in ended.err
    assert said.replace("PATH", str(site.folder / "odd_pack.py")) in ended.err


@pytest.mark.parametrize("tokens", ["float('nan'), 1, 2", "-5, 1, 2"])
def test_expected_calls_that_are_no_number(command: Command, site: Site, job: Path, tokens: str) -> None:
    method = f"def expected(self, job, level): return (ExpectedCall('default', 'default', ({tokens})),)"
    code = PROTOCOL.replace("WORK", "return (yield from work)").replace("\nIT =", f"\n    {method}\n\nIT =")
    site.add("protocols", "odd", "from edgen.plugin import ExpectedCall\n" + code)
    ended = command("estimate", job, "--set", "protocol=odd")
    assert ended.code == 2, ended.err
    assert "The protocol 'odd' of odd-pack 1.0" in ended.err


INF, NAN = "float('inf')", "float('nan')"


@pytest.mark.parametrize(
    ("aggregates", "columns", "said"),
    [
        ("Histogram('n')", f"{{'n': {INF}}}", "gave inf in the column 'n', which is not a finite number up to"),
        ("Histogram('n', shares=True)", "{'n': 1.5}", "gave 1.5 in the column 'n', which is not a number from 0 to 1"),
        ("Mean('n')", f"{{'n': {NAN}}}", "gave nan in the column 'n', which is not a finite number"),
        ("Mean('n')", "{'n': 'many'}", "gave 'many' in the column 'n', which is not a finite number"),
        ("Mean('n')", "{'n': 10 ** 400}", "in the column 'n', which is not a finite number"),
        ("Share('n', of='all')", "{'n': 9, 'all': 4}", "gave 9 in the column 'n', which is not a whole number from 0 to the 4 in 'all'"),
        ("Share('n', of='all')", "{'n': 1}", "gave the column 'n' without 'all', which 'n' is of"),
        ("Share('n', of='all', by_key=True)", "{'n': {'a': 2}, 'all': {'a': 1}}", "whose count of 'a' is not from 0 to the 1 in 'all'"),
        ("Share('n')", "{'n': 'no'}", "gave 'no' in the column 'n', which is not true or false"),
        ("Tally('n')", "{'n': 5}", "gave 5 in the column 'n', which is neither a text nor a list of texts"),
        ("Mean('n')", "None", "returned None as columns, not a mapping of values by name"),
    ],
)  # fmt: skip
def test_a_column_that_cannot_be_counted(
    command: Command,
    site: Site,
    run: Path,
    aggregates: str,
    columns: str,
    said: str,
) -> None:
    site.add("measures", "odd", measure(aggregates, columns))
    ended = command("stats", run, "--json")
    assert ended.code == 2
    assert "The measure 'odd' of odd-pack 1.0 " in ended.err
    assert said in ended.err
    found = json.loads(ended.out)
    assert "odd" not in found
    assert "overview" in found


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("    def lines(self, value): raise ZeroDivisionError('lines')", "raised ZeroDivisionError: lines"),
        ("    def lines(self, value): yield 5", "returned 5, an int, not a str"),
        ("    def finish(self, figures, shared): return {1, 2}", "has a `finish` that did not return a mapping of n"),
        ("    def finish(self, figures, shared): return {'n': object()}", "raised TypeError: Encoding objects"),
    ],
)  # fmt: skip
def test_a_measure_that_cannot_be_shown_is_left_out(
    command: Command,
    site: Site,
    run: Path,
    method: str,
    said: str,
) -> None:
    part = "OwnTexts, " if "lines" in method else "NeedsDataSet, "
    site.add("measures", "odd", measure("Mean('n')", "{'n': 1}", method, part))
    ended = command("stats", run)
    assert ended.code == 2
    assert "The measure 'odd' of odd-pack 1.0 " in ended.err
    assert said in ended.err
    assert "lengths\n" in ended.out
    assert "Note: Not measured: odd." in ended.out


@pytest.mark.parametrize("blocks", ["yield 5", "raise ZeroDivisionError('blocks')"])
def test_a_report_without_the_pictures_of_a_measure(
    command: Command,
    site: Site,
    run: Path,
    blocks: str,
) -> None:
    method = f"    def draw(found): {blocks}\n    panels = (draw,)"
    site.add("measures", "odd", measure("Mean('n')", "{'n': 1}", method))
    ended = command("report", run)
    assert ended.code == 0, ended.err
    page = (run / "report.html").read_text()
    assert "Not measured: odd. The measure &#39;odd&#39; of odd-pack 1.0" in page


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{'id': {1, 2}}", "gave a value of the type set in the column 'id', which JSON cannot hold"),
        ("{'id': float('nan')}", "gave the number nan in the column 'id', which JSON cannot hold"),
        ("{'id': ['a\\ud800']}", "gave a text with a lone surrogate in the column 'id'"),
        (
            "{'id': '1', 'other': 2}",
            "gave a row with the column 'other', which its `tables` does not explain",
        ),
        ("{'id': {0: 1}}", "gave the key 0 in the column 'id', which JSON cannot hold"),
        (
            "{'id': (lambda x: x.append(x) or x)([])}",
            "gave a value with more than 100 levels, or that contains it",
        ),
        ("5", "gave a row whose value is an int, not a dict of columns"),
    ],
)
def test_rows_that_no_file_can_hold(
    command: Command,
    site: Site,
    run: Path,
    tmp_path: Path,
    row: str,
    said: str,
) -> None:
    site.add("formats", "odd", FORMAT.replace("ROWS", f"yield Row(one.split, {row})").replace("MORE", ""))
    ended = command("export", run, "--to", "odd", "-o", tmp_path / "out")
    assert ended.code == 2
    assert f"The format 'odd' of odd-pack 1.0 {said}" in ended.err
    assert not (tmp_path / "out").exists()


def test_what_a_plugin_prints_is_no_part_of_the_json(command: Command, site: Site, run: Path) -> None:
    site.add("measures", "odd", "print('loaded')\n" + measure("Mean('n')", "print('seen') or {'n': 1}"))
    ended = command("stats", run, "--json")
    assert ended.code == 0, ended.err
    assert "odd" in json.loads(ended.out)
    assert ended.err.count("seen") == 12
    sys.modules.pop("odd_pack")
    assert "loaded" in ended.err


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (5, "returned 5, an int, not a LineResult"),
        (LineResult("a"), "returned None, a NoneType, not a CallError as `failure`"),
        (LineResult("a", Reply(3)), "returned a Reply with a field of a wrong type"),  # type: ignore[arg-type]
        (LineResult("a", failure=CallError("odd", "x")), "raised a CallError of the kind 'odd'"),  # type: ignore[arg-type]
    ],
)
def test_results_of_a_batch_that_no_ledger_holds(site: Site, said: Any, why: str) -> None:
    site.add("providers", "odd", PROVIDER.replace("ANSWER", "return Reply('x')"))
    with pytest.raises(FaultyPluginError, match=f"The provider 'odd' of odd-pack 1.0 {why}"):
        check_lines("odd", lambda _: said)(b"{}")
    fine = check_lines("odd", lambda _: LineResult("a", Reply("b\ud800")))(b"{}")
    assert fine == LineResult("a", Reply("b\ufffd"))
