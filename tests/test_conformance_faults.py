"""Objects with a fault that is easy to overlook: the checks of `edgen.testing` find it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import edgen
from edgen.domains.education.family import EDUCATION
from edgen.plugin import (
    BackendConfig,
    Conversation,
    Format,
    FormatCard,
    LeftOut,
    Mean,
    Measure,
    Message,
    Provider,
    Recorded,
    Reply,
    Request,
    Row,
    Share,
    Turn,
)
from edgen.protocols.oneshot import Oneshot
from edgen.testing import (
    ConformanceError,
    check_family,
    check_format,
    check_measure,
    check_protocol,
    check_provider,
)
from edgen.testing import providers as provider_checks
from tests import ROOT

pytestmark = pytest.mark.integration  # the checks start a process

Change = Callable[[tuple[Turn, ...]], tuple[Turn, ...]]


def is_elsewhere() -> bool:
    """Return whether this is the other process of a check."""
    spec = sys.modules["__main__"].__spec__
    return spec is not None and spec.name == "edgen.runtime.processes"


def keep(value: Any) -> Any:
    return value


class OddFamily(type(EDUCATION)):  # type: ignore[misc]
    """A family whose records have other turns, or other bytes."""

    name = "odd"

    def __init__(self, turns: Change = keep, **own: Any) -> None:
        self._turns = turns
        vars(self).update(own)

    def record(self, recorded: Recorded) -> bytes:
        made = recorded.conversation
        return bytes(
            super().record(replace(recorded, conversation=replace(made, turns=self._turns(made.turns))))
        )


def change_texts(change: Callable[[str], str]) -> Change:
    return lambda turns: tuple(replace(turn, text=change(turn.text)) for turn in turns)


def merge(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    made: list[Turn] = []
    for turn in turns:
        if made and made[-1].role == turn.role:
            made[-1] = replace(turn, text=f"{made[-1].text}\n{turn.text}")
        else:
            made.append(turn)
    return tuple(made)


def swap_second(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    return (turns[0], replace(turns[1], role=turns[0].role), *turns[2:])


class SubclassedRecorded(Recorded, frozen=True):
    """Another type than Recorded."""


class TestFamilies:
    @pytest.mark.parametrize(
        "turns",
        [
            swap_second,
            merge,
            lambda turns: turns[:30],
            lambda turns: tuple(dict.fromkeys(turns)),
            change_texts(str.rstrip),
            change_texts(str.lstrip),
            change_texts(lambda text: text[:10_000] or text),
            change_texts(lambda text: text.replace("\r\n", "\n")),
            change_texts(lambda text: text.replace("\u00a0", " ")),
            change_texts(lambda text: text.replace("\u200b", "")),
        ],
    )
    def test_lost_or_changed_turns(self, turns: Change) -> None:
        with pytest.raises(ConformanceError, match=r"family 'odd': does not read back what it records: conv"):
            check_family(OddFamily(turns))

    def test_a_family_that_keeps_what_it_recorded_last(self) -> None:
        kept: list[Recorded] = []

        def keep(recorded: Recorded) -> bytes:
            kept.append(recorded)
            return EDUCATION.record(recorded)

        with pytest.raises(ConformanceError, match="does not read back what it records: id is"):
            check_family(OddFamily(record=keep, read=lambda data: EDUCATION.read(data) and kept[-1]))

    def test_a_changed_argument(self) -> None:
        def record(recorded: Recorded) -> bytes:
            made = EDUCATION.record(recorded)
            recorded.scenario.values.clear()
            return bytes(made)

        with pytest.raises(ConformanceError, match="`record` changes the conversation that it is given"):
            check_family(OddFamily(record=record))

    def test_other_types(self) -> None:
        def read_as(make: Callable[[Recorded], Recorded]) -> OddFamily:
            return OddFamily(read=lambda data: make(EDUCATION.read(data)))

        def subclass(found: Recorded) -> Recorded:
            return SubclassedRecorded(**{name: getattr(found, name) for name in found.__struct_fields__})

        def make_list(found: Recorded) -> Recorded:
            return replace(found, conversation=replace(found.conversation, turns=[*found.turns]))

        for make in (subclass, make_list):
            with pytest.raises(
                ConformanceError, match="`read` returns another type than Recorded, or a list"
            ):
                check_family(read_as(make))

    def test_other_bytes_each_time(self) -> None:
        calls = iter(range(1_000))

        def record(recorded: Recorded) -> bytes:
            return bytes(EDUCATION.record(recorded)) + b" " * (next(calls) % 2)

        with pytest.raises(ConformanceError, match="`record` returns other bytes for the same conversation"):
            check_family(OddFamily(record=record))

    def test_other_bytes_in_another_process(self) -> None:
        with pytest.raises(ConformanceError, match="its records are others in another process"):
            check_family(ProcessFamily())

    @pytest.mark.parametrize(
        ("own", "said"),
        [
            ({"fits": lambda space: 1}, "`fits` returns 1, not True or False"),
            ({"recognizes": lambda record: "id" in record}, "`recognizes` returns True for {'id': "),
            (
                {"recognizes": lambda record: record["id"] != ""},
                "`recognizes` raises for {'nothing': 'known'}",
            ),
        ],
    )
    def test_other_answers(self, own: dict[str, Any], said: str) -> None:
        with pytest.raises(ConformanceError, match=f"family 'odd': {said}"):
            check_family(OddFamily(**own))


class ProcessFamily(OddFamily):
    """A family whose records depend on the process."""

    def record(self, recorded: Recorded) -> bytes:
        return super().record(recorded) + b" " * is_elsewhere()


RowMaker = Callable[[Any, int], Any]


def make_format(make: RowMaker) -> Format:
    def rows(run: Any, chat: Any) -> Iterator[Any]:
        for number, conversation in enumerate(run.conversations()):
            made = make(conversation, number)
            yield from [made] if isinstance(made, Row | LeftOut) else made

    return make_format_of(rows)


def make_format_of(rows: Callable[[Any, Any], Iterator[Any]]) -> Format:
    return Format(
        name="odd",
        summary="Odd.",
        rows=rows,
        tables={"id": "the conversation", "what": "a value"},
        use="load it",
        chat=False,
        card=FormatCard(reasons={"odd_one": "it is odd"}),
    )


def rows_by_process(run: Any, chat: Any) -> Iterator[Row]:
    for conversation in run.conversations():
        yield Row(conversation.split, {"id": conversation.candidate.id, "what": is_elsewhere()})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faults") / "run"
    edgen.generate(ROOT / "jobs" / "quickstart.yaml", output=folder, conversations=12)
    return folder


class TestFormats:
    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (lambda one, number: () if number else Row(one.split, {"id": "x"}), r"gives 1 rows and LeftOut for \d+ conversations"),
            (lambda one, number: Row("train", {"id": "x"}), "has no row of the split 'test'"),
            (lambda one, number: Row(one.split, {"what": "x" if number else 5}), "has values of the types float and str in the column 'what'"),
            (lambda one, number: Row(one.split, {"what": 2**63}), "gives 9223372036854775808 in the column 'what'; whole numbers have 64"),
        ],
    )  # fmt: skip
    def test_rows_that_mislead(self, run: Path, make: RowMaker, said: str) -> None:
        with pytest.raises(ConformanceError, match=f"format 'odd': {said}"):
            check_format(make_format(make), run)

    def test_a_mix_of_rows_and_reasons_passes(self, run: Path) -> None:
        check_format(make_format(lambda one, number: Row(one.split, {"id": "x", "what": None})), run)
        check_format(
            make_format(lambda one, number: LeftOut("odd_one") if number else Row("train", {"id": "x"})), run
        )

    def test_files_that_depend_on_the_process(self, run: Path) -> None:
        with pytest.raises(ConformanceError, match="its files are others in another process"):
            check_format(make_format_of(rows_by_process), run)


class OddMeasure(Measure[Any]):
    """A measure with one column."""

    name = "odd"
    definition = "Odd."
    aggregates = (Mean("n", label="n"),)

    def __init__(self, column: Callable[[Any, Any], Any], aggregate: Any = None) -> None:
        self._column = column
        if aggregate is not None:
            self.aggregates = (aggregate,)

    def of_one(self, sample: Any, words: Any, space: Any) -> dict[str, Any]:
        return {"n": self._column(sample, space)}


def hash_id(sample: Any, space: Any) -> int:
    return hash(sample.id) % 1_000


class TestMeasures:
    @pytest.mark.parametrize(
        ("column", "said"),
        [
            (lambda sample, space: float("nan"), "gave nan in the column 'n', which is not a finite number"),
            (lambda sample, space: sample.scenario.values.clear() or 1, "changes the conversations that it is"),
            (lambda sample, space: sample.turns[0].data.update(n=1) or 1, "changes the conversations that it is"),
            (lambda sample, space: len(space.names), "`of_one` raises without a space, as for a file"),
            (lambda sample, space: len(sample.turns[2].text), r"`of_one` raises for two turns \(IndexError"),
            (lambda sample, space: {"Teacher": 1, "Student": 2}[sample.turns[0].role], "`of_one` raises for roles that it does not"),
            (hash_id, "its figures are others in another process"),
        ],
    )  # fmt: skip
    def test_columns_of_some_conversations(self, run: Path, column: Any, said: str) -> None:
        with pytest.raises(ConformanceError, match=f"measure 'odd': {said}"):
            check_measure(OddMeasure(column), run)

    def test_a_count_as_a_truth(self, run: Path) -> None:
        with pytest.raises(
            ConformanceError, match="gave 5 in the column 'n', which is not true or false; name"
        ):
            check_measure(OddMeasure(lambda sample, space: 5, Share("n", label="n")), run)
        check_measure(OddMeasure(lambda sample, space: 1, Share("n", label="n")), run)


class OddConfig(BackendConfig, frozen=True, kw_only=True, tag_field="type", tag="odd"):
    """An odd backend."""

    model: str = "odd"


class OddBackend:
    """A backend that answers at once."""

    model = "odd"
    identity = {"type": "odd"}

    async def complete(self, request: Request) -> Reply:
        return Reply("Yes.")

    async def models(self) -> Any:
        return None

    async def aclose(self) -> None:
        """Close it."""


class OddProvider(Provider):
    """A provider of OddBackend, with other methods."""

    name = "odd"
    Config = OddConfig

    def __init__(self, **methods: Any) -> None:
        self._methods = methods

    def create(self, config: OddConfig, key: Any, link: Any) -> Any:
        return type("Odd", (OddBackend,), self._methods)()


async def ignore_cancellation(*_: Any) -> Reply:
    while True:
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError:
            continue


async def block(*_: Any) -> Reply:
    time.sleep(0.7)  # noqa: ASYNC251 - as a careless backend does
    return Reply("Yes.")


async def end(*_: Any) -> Reply:
    raise SystemExit(0)


async def list_wrongly(*_: Any) -> dict[str, str]:
    return {"odd": "odd"}


async def talk(*_: Any) -> Reply:
    return Reply("one, " * 500)


class SeedlessConfig(OddConfig, frozen=True, kw_only=True, tag_field="type", tag="odd"):
    """A backend whose service takes a seed."""

    TAKES_SEED = True


class TestProviders:
    def test_a_seed_that_is_not_sent(self) -> None:
        class Seedless(OddProvider):
            Config = SeedlessConfig

        async def complete(_: Any, request: Request) -> Reply:
            return Reply(f"{request.seed}")

        with pytest.raises(ConformanceError, match="`complete` never reads the `seed` of its request"):
            check_provider(Seedless(), call=True)
        check_provider(Seedless(complete=complete), call=True)
        check_provider(Seedless(), {"seed": 5}, call=True)

    @pytest.mark.parametrize(
        ("methods", "said"),
        [
            (
                {"complete": ignore_cancellation},
                "`complete` does not return within 0.2 s; heed the `timeout`",
            ),
            ({"complete": block}, "`complete` keeps the event loop for"),
            ({"complete": end}, "`complete` raises SystemExit: 0; it may raise nothing but CallError"),
            ({"complete": lambda *_: Reply("Yes.")}, "has a `complete` that is not `async def`"),
            ({"models": list_wrongly}, "`models` returns {'odd': 'odd'}, not a list of names or None"),
            ({"aclose": ignore_cancellation}, "`aclose` does not return within 0.1 s"),
            ({"identity": {"type": "other"}}, "has an `identity` whose `type` is 'other'"),
            ({"model": ""}, "has the `model` '', which no record can name"),
            (
                {"complete": talk},
                "ignores `max_tokens` of its Config: asked for 16 tokens at most, it gives 2500",
            ),
        ],
    )
    def test_calls(self, monkeypatch: pytest.MonkeyPatch, methods: dict[str, Any], said: str) -> None:
        slow = methods.get("complete") is block
        for name, seconds in (
            ("_TIMEOUT", 0.1),
            ("_LATE", 30.0 if slow else 0.1),
            ("CLOSING", 0.1),
            ("CANCELLING", 0.1),
        ):
            monkeypatch.setattr(provider_checks, name, seconds)
        with pytest.raises(ConformanceError, match=f"provider 'odd': {said}"):
            check_provider(OddProvider(**methods), call=True)

    def test_a_call_that_ignores_its_cancellation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(provider_checks, "CANCELLING", 0.1)
        calls = iter((Reply("Yes."), None))

        async def complete(*_: Any) -> Reply:
            return next(calls) or await ignore_cancellation()

        with pytest.raises(
            ConformanceError, match=r"`complete` does not end within 0\.1 s after it was canc"
        ):
            check_provider(OddProvider(complete=complete), call=True)

    def test_a_setting_that_it_does_not_have(self) -> None:
        with pytest.raises(ConformanceError, match="has no setting models; give other `settings`"):
            check_provider(OddProvider(), {"models": "x"})

    def test_a_good_one(self) -> None:
        check_provider(OddProvider(), call=True)


Work = Generator[Request, Reply, Any]


class OddProtocol(type("Base", (Oneshot,), {})):  # type: ignore[misc]
    """A protocol that changes its requests, its result, or other facts."""

    name = "odd"

    def __init__(self, change: Callable[[Request], Request] = keep, **own: Any) -> None:
        self._change = change
        self._finish = own.pop("finish", keep)
        vars(self).update(own)

    def start(self, scenario: Any, replicate: int, prompts: Any, rules: Any) -> Work:
        work = super().start(scenario, replicate, prompts, rules)
        request = next(work)
        while True:
            reply = yield self._change(replace(request, protocol="odd"))
            try:
                request = work.send(reply)
            except StopIteration as ended:
                return self._finish(ended.value) if isinstance(ended.value, Conversation) else ended.value


def add_process(request: Request) -> Request:
    return replace(request, messages=(*request.messages, Message("user", str(is_elsewhere()))))


def expect_nothing(protocol: Any, job: Any, level: int) -> Any:
    return tuple(one._replace(tokens=(3.0, 2.0, 1.0)) for one in Oneshot.expected(protocol, job, level))


class IgnoresReplicate(OddProtocol):
    """A protocol that asks for all replicates at one address."""

    def start(self, scenario: Any, replicate: int, prompts: Any, rules: Any) -> Work:
        return super().start(scenario, 0, prompts, rules)


class NeverCloses(OddProtocol):
    """A protocol that cannot be given up."""

    def start(self, scenario: Any, replicate: int, prompts: Any, rules: Any) -> Work:
        work = super().start(scenario, replicate, prompts, rules)
        request = next(work)
        while True:
            try:
                reply = yield request
            except GeneratorExit:
                reply = yield request
            try:
                request = work.send(reply)
            except StopIteration as ended:
                return ended.value


class ChangesScenario(OddProtocol):
    """A protocol that changes the scenario it is given."""

    def start(self, scenario: Any, replicate: int, prompts: Any, rules: Any) -> Work:
        made = yield from super().start(scenario, replicate, prompts, rules)
        scenario.values.clear()
        return made


class TestProtocols:
    @pytest.mark.parametrize(
        ("protocol", "said"),
        [
            (OddProtocol(lambda one: replace(one, seed=5)), "yields a request with a `seed` that does not follow from its"),
            (OddProtocol(lambda one: replace(one, protocol="oneshot")), "yields a request of the protocol 'oneshot'"),
            (OddProtocol(add_process), "its requests are others in another process"),
            (OddProtocol(lambda one: replace(one, messages=one.messages * 2)), "its first request is none of the messages of `opening`"),
            (OddProtocol(finish=lambda made: replace(made, turns=[*made.turns])), "returns a Conversation with a list in place"),
            (OddProtocol(start=lambda *_: None), "`start` returns a NoneType, not a generator"),
            (OddProtocol(simulated=lambda _: 1 / 0), "`simulated` raises"),
            (IgnoresReplicate(), "asks a scenario's second conversation at the addresses of its first"),
            (NeverCloses(), r"cannot be given up after its first request \(RuntimeError: generator ignored"),
            (ChangesScenario(), "changes the scenario that it is given"),
        ],
    )  # fmt: skip
    def test_requests_and_results(self, protocol: OddProtocol, said: str) -> None:
        with pytest.raises(ConformanceError, match=f"protocol 'odd': {said}"):
            check_protocol(protocol, {"prompt": "education_dialogue"})

    def test_expected_calls(self) -> None:
        protocol = OddProtocol()
        vars(protocol)["expected"] = partial(expect_nothing, protocol)
        with pytest.raises(
            ConformanceError, match=r"`expected` has the tokens \(3\.0, 2\.0, 1\.0\); few come"
        ):
            check_protocol(protocol, {"prompt": "education_dialogue"})

    def test_a_good_one(self) -> None:
        check_protocol(OddProtocol(), {"prompt": "education_dialogue"})
