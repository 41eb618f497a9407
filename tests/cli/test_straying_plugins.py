"""Plugins that fail late, or in a way that no return value shows: each is named, paid answers stay stored,
and the same command resumes after a fix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgen.core import registry
from edgen.simulator import simulated_request
from tests.cli.command import Command
from tests.cli.odd_plugins import FAMILY, PROTOCOL, PROVIDER, Site, calls_made, job, site

__all__ = ["job", "site"]

CALLS = """
import asyncio
from edgen.core.values import Usage
"""


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("raise KeyboardInterrupt", "raised KeyboardInterrupt in place of a CallError"),
        ("raise GeneratorExit", "raised GeneratorExit in place of a CallError"),
        ("asyncio.current_task().cancel(); await asyncio.sleep(0)", "cancelled the task that awaits its answer"),
        ("return Reply('x', usage=Usage(10 ** 30, 1))", "returned a Reply with more than 10,000,000 tokens"),
        ("return Reply('x', usage=Usage(2 ** 62, 1))", "returned a Reply with more than 10,000,000 tokens"),
    ],
)  # fmt: skip
def test_a_provider_that_ends_the_work_of_others(
    command: Command, site: Site, job: Path, tmp_path: Path, answer: str, said: str
) -> None:
    site.add("providers", "odd", CALLS + PROVIDER.replace("ANSWER", answer))
    ended = command("generate", job, "--set", "backends={default: {type: odd}}", "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert f"The provider 'odd' of odd-pack 1.0 {said}" in ended.err
    assert "bug in edgen" not in ended.err


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "GeneratorExit", "asyncio.CancelledError"])
def test_a_protocol_that_raises_an_error_of_the_interpreter(
    command: Command, site: Site, job: Path, tmp_path: Path, error: str
) -> None:
    site.add("protocols", "odd", CALLS + PROTOCOL.replace("WORK", f"yield next(work)\n        raise {error}"))
    ended = command("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert f"The protocol 'odd' of odd-pack 1.0 raised {error.rpartition('.')[2]}" in ended.err


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("step=-1", "yielded a request whose step or attempt is not from 0 to 9,999"),
        ("step=10 ** 30", "yielded a request whose step or attempt is not from 0 to 9,999"),
        ("attempt=10_000", "yielded a request whose step or attempt is not from 0 to 9,999"),
    ],
)
def test_a_protocol_that_asks_at_no_address(
    command: Command, site: Site, job: Path, tmp_path: Path, place: str, said: str
) -> None:
    work = f"""import msgspec
        first = next(work)
        yield msgspec.structs.replace(first, address=msgspec.structs.replace(first.address, {place}))"""
    site.add("protocols", "odd", PROTOCOL.replace("WORK", work))
    ended = command("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert f"The protocol 'odd' of odd-pack 1.0 {said}" in ended.err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("logprobs='many'", "returned a Request with a field of a wrong type"),
        ("messages=()", "yielded a Request without messages"),
    ],
)
def test_a_request_with_fields_of_other_types(
    command: Command, site: Site, job: Path, tmp_path: Path, change: str, said: str
) -> None:
    work = f"import msgspec\n        yield msgspec.structs.replace(next(work), {change})"
    site.add("protocols", "odd", PROTOCOL.replace("WORK", work))
    ended = command("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert f"The protocol 'odd' of odd-pack 1.0 {said}" in ended.err


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        ("Turn('Teacher', ' ')", "returned a Conversation whose turn 2 has no text"),
        ("Turn('', 'Yes.')", "returned a Conversation whose turn 2 has a role that is not a name: ''"),
        ("Turn('a\\nb', 'Yes.')", "returned a Conversation whose turn 2 has a role that is not a name"),
    ],
)
def test_a_conversation_with_a_turn_that_is_none(
    command: Command, site: Site, job: Path, tmp_path: Path, turn: str, said: str
) -> None:
    work = f"made = yield from work\n        return Conversation((*made.turns[:2], {turn}))"
    site.add("protocols", "odd", PROTOCOL.replace("WORK", work))
    ended = command("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert f"The protocol 'odd' of odd-pack 1.0 {said}" in ended.err


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("def templates(self, job, space): return {'a': 'b'}", "returned 'b' from `templates`, where a Template"),
        ("def roles(self, job): return 'default'", "returned 'default' from `roles`, not a tuple of names"),
        ("def roles(self, job): return (1, 2)", "returned (1, 2) from `roles`, not a tuple of names"),
        ("def simulated(self, request): return 5", "returned 5, an int, not a str or None"),
    ],
)  # fmt: skip
def test_a_protocol_with_answers_of_other_types(
    command: Command, site: Site, job: Path, tmp_path: Path, method: str, said: str
) -> None:
    work = "import msgspec\n        yield msgspec.structs.replace(next(work), protocol='odd', scene=None)"
    code = PROTOCOL.replace("WORK", work).replace("\nIT =", f"\n    {method}\n\nIT =")
    if "roles" in method:
        code = "from edgen.plugin import RolesAndSettings\n" + code.replace(
            "(Oneshot,)", "(RolesAndSettings, Oneshot)"
        )
    site.add("protocols", "odd", code)
    ended = command("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert f"The protocol 'odd' of odd-pack 1.0 {said}" in ended.err
    simulated_request._find_protocol.cache_clear()


def test_a_protocol_that_changes_its_scenario(
    command: Command, site: Site, job: Path, tmp_path: Path
) -> None:
    work = "made = yield from work\n        scenario.values.clear()\n        return made"
    site.add("protocols", "odd", PROTOCOL.replace("WORK", work))
    run = tmp_path / "run"
    assert command("generate", job, "--set", "protocol=odd", "-o", run).code == 0
    assert command("validate", run).code == 0
    assert "  topic " in command("show", run, "0").out


LOSES = """def record(self, recorded):
        import msgspec
        made = recorded.conversation
        if recorded.scenario.index == 5:
            made = msgspec.structs.replace(made, turns=made.turns[:-1])
        return super().record(msgspec.structs.replace(recorded, conversation=made))"""
RAISES = """def record(self, recorded):
        if recorded.scenario.index == 5:
            raise GeneratorExit
        return super().record(recorded)"""
CHANGES = """def record(self, recorded):
        values = recorded.scenario.values
        values[next(iter(values))] = 'other'
        return super().record(recorded)"""


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (
            LOSES,
            "does not read back what it records: of conversation small-000005-r0, conversation.turns has",
        ),
        (RAISES, "raised GeneratorExit for conversation small-000005-r0"),
        (CHANGES, "does not read back what it records: of conversation small-0000"),
    ],
)
def test_a_family_that_loses_something_late(
    command: Command, site: Site, job: Path, tmp_path: Path, method: str, said: str
) -> None:
    good = FAMILY.replace("CHANGE", "pass")
    site.add("families", "swapped", good.replace("\nIT =", f"\n    {method}\n\nIT ="))
    run = ("generate", job, "--set", "family=swapped", "-o", tmp_path / "run")
    ended = command(*run)
    assert ended.code == 2, ended.err
    assert f"The family 'swapped' of odd-pack 1.0 {said}" in ended.err
    before = calls_made(command, tmp_path / "run")
    site.replace(good)
    again = command(*run, "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["accepted"] == 12
    assert calls_made(command, tmp_path / "run") == max(before, 12)


def test_an_answer_that_makes_the_next_prompt_too_long_fails_its_scenario_alone(
    command: Command, site: Site, job: Path, tmp_path: Path
) -> None:
    answer = "return Reply('x ' * 1_000_000 if request.address.scenario == 1 else 'I see. [[ED]]')"
    site.add("providers", "odd", PROVIDER.replace("ANSWER", answer))
    job.write_text(job.read_text().replace("prompt: education_dialogue\n", "protocol: selfplay\n"))
    ended = command("generate", job, "--set", "backends={default: {type: odd}}", "-o", tmp_path / "run")
    assert ended.code in (3, 5), ended.err
    status = json.loads(command("status", tmp_path / "run", "--json").out)
    assert status["pending"] == 0
    assert "renders to more than" not in ended.err


def test_a_new_version_of_a_protocol_makes_its_conversations_again_from_stored_answers(
    command: Command, site: Site, job: Path, tmp_path: Path
) -> None:
    good = PROTOCOL.replace("WORK", "return (yield from work)")
    wrong = "made = yield from work\n        return Rejection('odd', 'x') if scenario.index == 5 else made"
    site.add("protocols", "odd", PROTOCOL.replace("WORK", wrong))
    run = ("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run", "--json")
    assert json.loads(command(*run).out)["rejected"] == {"odd": 1}
    before = calls_made(command, tmp_path / "run")
    site.replace(good)
    assert json.loads(command(*run).out)["accepted"] == 11
    (metadata,) = site.folder.glob("*.dist-info/METADATA")
    metadata.write_text(metadata.read_text().replace("Version: 1.0", "Version: 1.1"))
    registry._index_plugins.cache_clear()
    assert json.loads(command(*run).out)["accepted"] == 12
    assert calls_made(command, tmp_path / "run") == before


MEASURE = """
from edgen.plugin import Mean, Measure, Tally

class Odd(Measure):
    name = "odd"
    order = 0
    definition = "Nothing that anybody needs."
    aggregates = AGGREGATES

    def of_one(self, sample, words, space):
        ONE

IT = Odd()
"""


def measure(one: str, aggregates: str = "(Mean('n', label='n'), Tally('who', label='who'))") -> str:
    return MEASURE.replace("AGGREGATES", aggregates).replace("ONE", one)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (measure("return {'m': 1}"), "gave the columns 'm', none of which its `aggregates` read"),
        (measure("return {1: 1}"), "gave the columns 1, none of which its `aggregates` read"),
        (measure("return {'who': 'x' * 10_001}"), "in the column 'who', whose text of 10,001 characters is too"),
        (measure("return {'who': 'a\\ud800'}"), "in the column 'who', whose text of 2 characters is too"),
        (measure("raise GeneratorExit"), "raised GeneratorExit"),
        (measure("return {}", "(one for one in [Mean('n')])"), "has `aggregates` that are not a tuple: <generator"),
    ],
)  # fmt: skip
def test_a_measure_whose_columns_no_aggregate_reads(
    command: Command, site: Site, job: Path, tmp_path: Path, code: str, said: str
) -> None:
    run = tmp_path / "run"
    assert command("generate", job, "-o", run).code == 0
    site.add("measures", "odd", code)
    ended = command("stats", run, "--only", "odd")
    assert ended.code == 2, ended.out
    assert f"The measure 'odd' of odd-pack 1.0 {said}" in ended.err or said in ended.err


def test_a_measure_that_fails_late_is_named_by_every_command(
    command: Command, site: Site, job: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run"
    assert command("generate", job, "-o", run).code == 0
    late = measure("return {'n': float('nan') if sample.scenario.index == 9 else 1}")
    figures = "    figures = {'n': 'number'}\n\n    def of_one"
    site.add("measures", "odd", late.replace("    def of_one", figures))
    said = (
        "gave nan in the column 'n', which is not a finite number (int or float), for conversation small-0000"
    )
    select = ("select", run, "--where", "measures.odd.n >= 1", "-o", tmp_path / "selected")
    for words in (("stats", run), select):
        ended = command(*words)
        assert ended.code == 2
        assert f"The measure 'odd' of odd-pack 1.0 {said}" in ended.err
    assert command("report", run, "-o", tmp_path / "report.html").code == 0
    assert f"Not measured: odd. The measure 'odd' of odd-pack 1.0 {said}" in caplog.text


CHANGES = """sample.scenario.values.clear()
        sample.turns[0].data["said"] = sample.labels["acts"] = {}
        words[0].clear()
        words.pop()
        return {"n": 1}"""


def test_a_measure_that_changes_its_arguments_changes_no_other_figure(
    command: Command, site: Site, job: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert command("generate", job, "-o", run).code == 0
    alone = json.loads(command("stats", run, "--json").out)
    site.add("measures", "odd", measure(CHANGES))
    found = json.loads(command("stats", run, "--json").out)
    assert found.pop("odd")["n"]["n"] == 12
    del found["definitions"]["odd"]
    assert found == alone


def test_running_code_of_a_plugin_is_found(command: Command, site: Site, job: Path, tmp_path: Path) -> None:
    work = """import sys
        from edgen.core.plugins.faults import describe_running
        yield next(work)
        raise ValueError(describe_running((lambda: sys._getframe())()))"""
    site.add("protocols", "odd", PROTOCOL.replace("WORK", work))
    with next(site.folder.glob("*/entry_points.txt")).open("a") as entries:  # another plugin in the module
        entries.write("[edgen.providers]\nother = odd_pack:OTHER\n")
    ended = command("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run")
    place = f"({site.folder / 'odd_pack.py'}, line 13, in <lambda>)"
    assert f"raised ValueError: The protocol 'odd' of odd-pack 1.0 {place}" in ended.err


def test_an_entry_point_without_an_object(command: Command, site: Site) -> None:
    site.add("measures", "odd", measure("return {}"))
    (points,) = site.folder.glob("*.dist-info/entry_points.txt")
    points.write_text(points.read_text().replace("odd_pack:IT", "odd_pack"))
    registry._index_plugins.cache_clear()
    found = {one["name"]: one["error"] for one in json.loads(command("plugins", "--json").out)["plugins"]}
    assert found["odd"] == (
        "The measure 'odd' of odd-pack 1.0 has the entry point 'odd_pack', which names no object: MODULE:OBJECT."
    )
