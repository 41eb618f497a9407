"""Plugins that violate the rules of their kind: a message names the plugin, and nothing is lost."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.cli.odd_plugins import (
    FAMILY,
    FORMAT,
    PROTOCOL,
    PROVIDER,
    Site,
    calls_made,
    job,
    made_run,
    run,
    site,
)

__all__ = ["job", "made_run", "run", "site"]

MEASURE = """
from edgen.evaluation.measure import Measure
from edgen.plugin import OwnCount

class Count:
    def __init__(self):
        self.seen = 0

    def see(self, sample, words):
        self.seen += 1
        if self.seen == 10:
            raise ValueError("ten is too many")

    def result(self):
        return self.seen

class Tenth(OwnCount, Measure):
    name = "tenth"
    definition = "Raises on the tenth conversation."
    counts = Count

IT = Tenth()
"""

COMPARED = """
from edgen.plugin import Measure, Mean

class Tenth(Measure):
    name = "tenth"
    definition = "Raises on the tenth conversation."
    aggregates = (Mean("n"),)
    seen = 0

    def of_one(self, sample, words, space):
        self.seen += 1
        if self.seen == 10:
            raise ValueError("ten is too many")
        return {"n": self.seen}

IT = Tenth()
"""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("turns = turns[:-1]", "conversation.turns has"),
        (
            "turns = [msgspec.structs.replace(t, role={'Teacher': 'Student'}.get(t.role, 'Teacher')) for t in turns]",
            "in place of 'Teacher'",
        ),
        (
            "turns = [msgspec.structs.replace(t, text=t.text[::-1]) for t in turns]",
            "conversation.turns[0].text is",
        ),
        ("raise KeyError('lines')", "raised KeyError: 'lines' for its own record of conversation small-0000"),
        ("raise SystemExit(0)", "raised SystemExit: 0 for its own record of conversation small-0000"),
    ],
)
def test_a_family_that_does_not_read_back_its_records(
    command: Command, site: Site, job: Path, tmp_path: Path, change: str, said: str
) -> None:
    site.add("families", "swapped", FAMILY.replace("CHANGE", change))
    limits = ("--set", "family=swapped", "--set", "limits.in_flight=1", "--set", "conversations=300")
    ended = command("generate", job, *limits, "-o", tmp_path / "run")
    assert ended.code == 2
    assert "The family 'swapped' of odd-pack 1.0" in ended.err
    assert said in ended.err
    assert "bug in edgen" not in ended.err
    assert calls_made(command, tmp_path / "run") < 20  # of 300


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("raise KeyError('lines')", "raised KeyError: 'lines'"),
        ("raise SystemExit(0)", "raised SystemExit: 0"),
        ("return 5", "returned 5, an int, not a Recorded"),
    ],
)
def test_a_family_that_no_longer_reads_a_run(
    command: Command,
    site: Site,
    job: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    said: str,
) -> None:
    site.add(
        "families",
        "swapped",
        FAMILY.replace("CHANGE", f"import os\n        if 'UPDATED' in os.environ: {change}"),
    )
    run = tmp_path / "run"
    assert command("generate", job, "--set", "family=swapped", "-o", run).code == 0
    monkeypatch.setenv("UPDATED", "1")
    for words in (("stats", run), ("show", run, "0"), ("web", run, "--export", tmp_path / "pages")):
        ended = command(*words)
        assert ended.code == 2, words
        assert f"The family 'swapped' of odd-pack 1.0 {said}" in ended.err, words
        assert "bug in edgen" not in ended.err


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("return 'a text'", "returned 'a text', a str, not a Reply"),
        ("return Reply(text=3)", "returned a Reply with a field of a wrong type"),
        ("return Reply(text=b'Teacher: Hi.')", "returned a Reply with a field of a wrong type"),
        ("return Reply('text', usage=(1, 2))", "returned a Reply with a field of a wrong type"),
        ("raise KeyError('choices')", "raised KeyError: 'choices' in place of a CallError"),
        ("raise SystemExit(3)", "raised SystemExit: 3 in place of a CallError"),
        (
            "import asyncio; raise asyncio.CancelledError()",
            "raised CancelledError in place of a CallError",
        ),
    ],
)
def test_a_provider_that_returns_or_raises_something_else(
    command: Command, site: Site, job: Path, tmp_path: Path, answer: str, said: str
) -> None:
    site.add("providers", "odd", PROVIDER.replace("ANSWER", answer))
    ended = command("generate", job, "--set", "backends={default: {type: odd}}", "-o", tmp_path / "run")
    assert ended.code == 2
    assert "The provider 'odd' of odd-pack 1.0" in ended.err
    assert said in ended.err
    assert "bug in edgen" not in ended.err


def test_a_complete_that_is_not_async(command: Command, site: Site, job: Path, tmp_path: Path) -> None:
    code = PROVIDER.replace("ANSWER", "return Reply('text')").replace("async def complete", "def complete")
    site.add("providers", "odd", code)
    ended = command("generate", job, "--set", "backends={default: {type: odd}}", "-o", tmp_path / "run")
    assert ended.code == 2
    assert "The provider 'odd' of odd-pack 1.0 has a `complete` that is not `async def`" in ended.err


@pytest.mark.parametrize(
    ("identity", "said"),
    [
        ("{'type': object()}", "has an `identity` that is not JSON"),
        ("['odd']", "returned ['odd'], a list, not a mapping as `identity`"),
    ],
)
def test_a_provider_whose_backend_has_no_usable_identity(
    command: Command, site: Site, job: Path, tmp_path: Path, identity: str, said: str
) -> None:
    code = PROVIDER.replace("ANSWER", "return Reply('text')").replace("{'type': 'odd'}", identity)
    site.add("providers", "odd", code.replace('{"type": "odd"}', identity))
    ended = command("generate", job, "--set", "backends={default: {type: odd}}", "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert f"The provider 'odd' of odd-pack 1.0 {said}" in ended.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("verb", "method", "said"),
    [
        (
            "generate",
            "def templates(self, job, space): return ['x']",
            "['x'], a list, not a dict of templates",
        ),
        ("generate", "def start(self, *_): return 5", "5, an int, not a generator from `start`"),
        ("preview", "def opening(self, *_): return None", "None, a NoneType, not a dict of messages"),
        ("estimate", "def expected(self, *_): return None", "None, a NoneType, not a tuple of ExpectedCall"),
    ],
)
def test_a_protocol_whose_methods_return_something_else(
    command: Command, site: Site, job: Path, verb: str, method: str, said: str
) -> None:
    code = PROTOCOL.replace("WORK", "return (yield from work)")
    site.add("protocols", "odd", code.replace("\nIT =", f"\n    {method}\n\nIT ="))
    ended = command(verb, job, "--set", "protocol=odd")
    assert ended.code == 2, ended.err
    assert f"The protocol 'odd' of odd-pack 1.0 returned {said}" in ended.err


def test_a_family_whose_schema_is_missing(command: Command, site: Site, job: Path, tmp_path: Path) -> None:
    code = FAMILY.replace("CHANGE", "pass").replace('"swapped"', '"swapped"\n    schema = "./none.json"')
    site.add("families", "swapped", code)
    ended = command("generate", job, "--set", "family=swapped", "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert "The family 'swapped' of odd-pack 1.0 has the schema" in ended.err
    assert "there is no such file" in ended.err


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ("yield 'a question'", "yielded a str, not a Request"),
        ("return (yield from work).turns", "a tuple, not a Conversation or a Rejection"),
        ("return Conversation((yield from work).turns, probability='high')", "with a field of a wrong type"),
        ("made = yield from work\n        raise LookupError('no end')", "raised LookupError: no end"),
        ("yield next(work)\n        exit(0)", "raised SystemExit: 0"),
        (
            "reply = yield next(work)\n        return work.send(reply)",
            "raised RuntimeError: generator raised Stop",
        ),
        (
            "return Conversation((yield from work).turns, probability=float('nan'))",
            "a Conversation or a Rejection with nan, which is not a finite number",
        ),
        ("yield next(work)\n        return Rejection('a\\nb', 'why')", "an invalid reason: 'a\\nb'"),
        (
            "yield next(work)\n        return Rejection('So tired', 'why')",
            "invalid reason: 'So tired'; use",
        ),
        (
            "import msgspec\n        yield msgspec.structs.replace(next(work), role='nobody')",
            "asked the role 'nobody', which its `roles` does not list",
        ),
    ],
)
def test_a_protocol_that_yields_or_returns_something_else(
    command: Command, site: Site, job: Path, tmp_path: Path, work: str, said: str
) -> None:
    site.add("protocols", "odd", PROTOCOL.replace("WORK", work))
    ended = command("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert "The protocol 'odd' of odd-pack 1.0" in ended.err
    assert said in ended.err
    assert "bug in edgen" not in ended.err
    # Answers are stored: with the plugin fixed, the same command resumes.
    sys.modules.pop("odd_pack")
    (site.folder / "odd_pack.py").write_text(PROTOCOL.replace("WORK", "return (yield from work)"))
    from edgen.core import registry

    registry._find.cache_clear()
    before = calls_made(command, tmp_path / "run")
    again = command("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run", "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["accepted"] == 12
    assert calls_made(command, tmp_path / "run") >= max(before, 12)


@pytest.mark.parametrize("declared", [True, False])
def test_a_reason_of_a_protocols_own(
    command: Command, site: Site, job: Path, tmp_path: Path, declared: bool
) -> None:
    work = "made = yield from work\n        return made if scenario.index else Rejection('tired', 'zzz')"
    code = PROTOCOL.replace("WORK", work)
    if declared:
        said = "(DeclaredReason(code='tired', says='the student is too tired'),)"
        code = code.replace('"odd"\n\n', f'"odd"\n    reasons = {said}\n\n')
        code = f"from edgen.plugin.protocols import DeclaredReason\n{code}"
    site.add("protocols", "odd", code)
    run = tmp_path / "run"
    assert command("generate", job, "--set", "protocol=odd", "-o", run).code == 3
    status = command("status", run).out
    facts = json.loads(command("status", run, "--json").out)
    assert facts["rejected"] == {"tired": 1}
    assert facts.get("reasons") == ({"tired": "the student is too tired"} if declared else None)
    assert ("tired: the student is too tired" in status) == declared
    assert command("report", run, "-o", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert ("<p>The student is too tired.</p>" in page) == declared
    assert "<h3>tired " in page
    measured = command("stats", run, "--only", "coverage").out
    assert "1 tired" in measured
    assert measured.count("tired: the student is too tired") == declared
    assert "too tired" not in command("stats", run, "--only", "coverage", "--json").out


def test_a_protocol_that_never_ends(
    command: Command, site: Site, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgen.execution.rollout.MOST_REQUESTS", 50)
    site.add(
        "protocols", "odd", PROTOCOL.replace("WORK", "first = next(work)\n        while True: yield first")
    )
    ended = command("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert "The protocol 'odd' of odd-pack 1.0 asked 50 requests and did not end" in ended.err
    assert calls_made(command, tmp_path / "run") <= 12, "each was asked once"


class TestMeasure:
    def test_the_others_are_printed_and_the_command_fails(
        self, command: Command, site: Site, job: Path, tmp_path: Path
    ) -> None:
        run = tmp_path / "run"
        assert command("generate", job, "-o", run).code == 0
        alone = json.loads(command("stats", run, "--json").out)
        site.add("measures", "tenth", MEASURE)
        ended = command("stats", run, "--json")
        assert ended.code == 2
        assert (
            "The measure 'tenth' of odd-pack 1.0 raised ValueError: ten is too many for conversation small-"
            in ended.err
        )
        assert "odd_pack.py, line 12, in see" in ended.err
        found = json.loads(ended.out)
        assert "tenth" not in found
        assert any(note.startswith("Not measured: tenth.") for note in found.pop("notes"))
        alone.pop("notes")
        assert found == alone

    def test_it_does_not_end_edgen(self, command: Command, site: Site, job: Path, tmp_path: Path) -> None:
        run = tmp_path / "run"
        assert command("generate", job, "-o", run).code == 0
        site.add("measures", "tenth", MEASURE.replace('raise ValueError("ten is too many")', "exit(0)"))
        ended = command("stats", run)
        assert ended.code == 2
        assert "The measure 'tenth' of odd-pack 1.0 raised SystemExit: 0" in ended.err

    def test_compare_leaves_it_out_and_fails(
        self, command: Command, site: Site, job: Path, tmp_path: Path
    ) -> None:
        runs = [tmp_path / "run", tmp_path / "other"]
        for made in runs:
            assert command("generate", job, "-o", made).code == 0
        alone = json.loads(command("compare", *runs, "--json").out)
        site.add("measures", "tenth", COMPARED)
        ended = command("compare", *runs, "--json")
        assert ended.code == 2
        assert (
            "The measure 'tenth' of odd-pack 1.0 raised ValueError: ten is too many for conversation small-"
            in ended.err
        )
        found = json.loads(ended.out)
        assert [one["why"] for one in found["not_compared"] if one["what"] == "tenth"] == [
            said.removesuffix(".") for said in found["faults"]
        ]
        assert found["metrics"] == alone["metrics"]

    def test_a_gate_by_it_stops_the_run(
        self, command: Command, site: Site, job: Path, tmp_path: Path
    ) -> None:
        code = MEASURE + "\nTenth.figures = {'': 'number'}\nTenth.of_one = lambda self, *_: [][1]\n"
        site.add("measures", "tenth", code)
        ended = command("generate", job, "--set", "gates.few='measures.tenth < 3'", "-o", tmp_path / "run")
        assert ended.code == 2
        assert "The measure 'tenth' of odd-pack 1.0 raised IndexError" in ended.err


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            "yield {'id': '1'}",
            "The format 'odd' of odd-pack 1.0 gave a row that is a dict, not a Row or LeftOut",
        ),
        ("raise RuntimeError('no rows')", "The format 'odd' of odd-pack 1.0 raised RuntimeError: no rows"),
        ("pass", "The format 'odd' of odd-pack 1.0 raised TypeError: 'NoneType' object is not iterable"),
        ("raise SystemExit(0)", "The format 'odd' of odd-pack 1.0 raised SystemExit: 0"),
        (
            "yield Row(one.split, {'id': object()})",
            "gave a value of the type object in the column 'id', which JSON cannot hold",
        ),
        ("yield Row('../other', {'id': '1'})", "does not have: 'default', '../other'"),
        ("yield Row(one.split, {'id': '1'}, 'more')", "does not have: 'more', 'train'"),
        ("yield LeftOut(5)", "left something out for 5, which is not a name such as too_long"),
        ("yield LeftOut('a\\nb')", "left something out for 'a\\nb', which is not a name such as too_long"),
        ("if number == 1: import math; math.sqrt(-1)", "raised ValueError: math domain error"),
    ],
)
def test_a_format_that_gives_something_else(
    command: Command, site: Site, job: Path, tmp_path: Path, rows: str, said: str
) -> None:
    run = tmp_path / "run"
    assert command("generate", job, "-o", run).code == 0
    site.add("formats", "odd", FORMAT.replace("ROWS", rows).replace("MORE", ""))
    ended = command("export", run, "--to", "odd", "-o", tmp_path / "out")
    assert ended.code == 2
    assert said in ended.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("add", "finish", "said"),
    [
        ("raise KeyError(1)", "return {}", "raised KeyError: 1 for the row {'id': "),
        ("pass", "raise KeyError(1)", "raised KeyError: 1 in `finish`"),
        ("pass", "return {('default', 'train'): 'train.txt'}", "named 'train.txt' for the table and split ('default', 'train') in `finish`; there is no such table, split or file"),
        ("pass", "return None", "returned None, a NoneType, not a dict from `finish`"),
    ],
)  # fmt: skip
def test_a_format_whose_files_are_missing(
    command: Command, site: Site, run: Path, tmp_path: Path, add: str, finish: str, said: str
) -> None:
    files = f"""
from edgen.plugin import FormatLayout
from edgen.plugin.formats import RowFiles

class Files(RowFiles):
    def add(self, row):
        {add}

    def finish(self):
        {finish}
"""
    rows = FORMAT.replace("ROWS", "yield Row(one.split, {'id': one.candidate.id})")
    site.add("formats", "odd", files + rows.replace("MORE", "layout=FormatLayout(files=Files)"))
    ended = command("export", run, "--to", "odd", "-o", tmp_path / "out")
    assert ended.code == 2
    assert f"The format 'odd' of odd-pack 1.0 {said}" in ended.err
    assert not (tmp_path / "out").exists()


def test_a_format_has_reasons_of_its_own(command: Command, site: Site, job: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert command("generate", job, "-o", run).code == 0
    rows = "yield LeftOut('odd_number') if number % 2 else Row(one.split, {'id': one.candidate.id})"
    meant = "card=FormatCard(reasons={'odd_number': 'its number is odd'}),"
    site.add("formats", "odd", FORMAT.replace("ROWS", rows).replace("MORE", meant))
    ended = command("export", run, "--to", "odd", "-o", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert "left out   6 odd_number: its number is odd" in ended.out + ended.err
    assert "| odd_number | 6 | its number is odd |" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize(
    ("group", "kind", "code", "missing"),
    [
        (
            "protocols",
            "protocol",
            "from edgen.protocols.base import ConversationProtocol as Base",
            "`opening`",
        ),
        ("families", "family", "from edgen.families.base import Family as Base", "`read`"),
        ("providers", "provider", "from edgen.providers.base import Provider as Base", "`create`"),
    ],
)
def test_one_that_lacks_a_required_method_is_refused_when_it_is_loaded(
    command: Command, site: Site, group: str, kind: str, code: str, missing: str
) -> None:
    others = {"templates", "start", "expected", "fits", "record"}
    methods = "".join(f"    def {name}(self, *given): ...\n" for name in sorted(others))
    site.add(group, "half", f"{code}\nclass Half(Base):\n    name = 'half'\n{methods}\nIT = Half()\n")
    (found,) = [
        one for one in json.loads(command("plugins", "--json").out)["plugins"] if one["name"] == "half"
    ]
    assert found["error"] == (
        f"The {kind} 'half' of odd-pack 1.0 lacks {missing}, which every {kind} has to define; "
        "update or uninstall odd-pack."
    )


def test_one_that_imports_a_private_module_works_with_a_note(
    command: Command, site: Site, job: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert command("generate", job, "-o", run).code == 0
    site.add("measures", "tenth", MEASURE.replace("self.seen == 10", "self.seen < 0"))
    assert command("stats", run, "--only", "tenth").code == 0
    (found,) = [
        one for one in json.loads(command("plugins", "--json").out)["plugins"] if one["name"] == "tenth"
    ]
    note = "imports edgen.evaluation.measure, which may change in any release; `edgen.plugin` has names that stay"
    assert (found["error"], found["note"]) == (None, note)
    assert note in " ".join(command("plugins").out.split())


def test_one_that_imports_public_names_has_no_note(command: Command, site: Site) -> None:
    site.add("measures", "tenth", MEASURE.replace("edgen.evaluation.measure", "edgen.plugin"))
    found = json.loads(command("plugins", "--json").out)["plugins"]
    assert {one["note"] for one in found} == {None}
    assert "tenth" in {one["name"] for one in found}
