"""edgen's own objects pass the checks that a package runs on its own; an object that breaks a rule fails."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import edgen
from edgen.config.loading import list_conversation_protocols
from edgen.core import registry, resources
from edgen.core.errors import JobError
from edgen.core.values import Rejection, Reply
from edgen.core.version import DISTRIBUTION
from edgen.core.yaml_values import read_text, read_yaml
from edgen.domains.education.family import EDUCATION
from edgen.evaluation.aggregates import Histogram, Mean, Share
from edgen.evaluation.measure import Measure, OwnTexts
from edgen.evaluation.measuring import find_measures_of_other_families
from edgen.export.format import Format, Row
from edgen.space import load_space
from edgen.store.run_reader import RunReader
from edgen.testing import (
    ConformanceError,
    check_family,
    check_format,
    check_measure,
    check_protocol,
    check_provider,
)
from tests import ROOT
from tests.cli.odd_plugins import PROVIDER
from tests.domains import modules_of
from tests.providers import llama

pytestmark = pytest.mark.integration


def gather(name: str, own: dict[str, Any]) -> dict[str, Any]:
    """Return the engine's own entries, with those of each domain (tests/domains/*/conformance.py)."""
    each = [getattr(module, name, {}) for module in modules_of("conformance")]
    return own | {key: value for one in each for key, value in one.items()}


# The shipped job that stands for a protocol, and the protocol whose run has the data that a family or a
# format needs.
JOBS = gather("JOBS", {"oneshot": "quickstart", "selfplay": "selfplay"})
FAMILY_JOBS = gather("FAMILIES", {"education": "oneshot"})
FORMAT_JOBS = gather("FORMATS", {"skyrl": "selfplay", "verl-rl": "selfplay"})
FORMAT_OPTIONS = gather("FORMAT_OPTIONS", {})
# Families that recognise their records by more than their layout, so that no record can be made up.
KNOWN_BY_CONTENT = {
    name for module in modules_of("conformance") for name in getattr(module, "KNOWN_BY_CONTENT", ())
}
PROVIDER_SETTINGS = {"litellm": {"model": "openai/some-model"}, "vertex": {"project": "some-project"}}


def own(kind: registry.Kind) -> list[str]:
    return [one.name for one in registry.list_plugins() if one.kind == kind and one.package == DISTRIBUTION]


def keys_of(protocol: str) -> dict[str, Any]:
    path = ROOT / "jobs" / f"{JOBS[protocol]}.yaml"
    keys: dict[str, Any] = read_yaml(read_text(path, JobError), path.name, JobError)
    return keys | {"conversations": 8}


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that returns the folder of a small run of a protocol, made on first use."""
    above = tmp_path_factory.mktemp("conformance")

    def folder(protocol: str) -> Path:
        if not (above / protocol).exists():
            run = edgen.generate(
                ROOT / "jobs" / f"{JOBS[protocol]}.yaml", output=above / protocol, conversations=8
            )
            assert run.status.state == "complete"
        return above / protocol

    return folder


@pytest.mark.parametrize(
    "name",
    [
        # two processes import litellm, seconds each
        pytest.param(name, marks=pytest.mark.only_long) if name == "litellm" else name
        for name in own("provider")
        if name != "function"  # made in Python alone
    ],
)
def test_providers(name: str, tmp_path: Path) -> None:
    settings = PROVIDER_SETTINGS.get(name)
    if name == "llamacpp":
        llama.write_model(tmp_path / "tiny.gguf", 256)
        settings = {"path": str(tmp_path / "tiny.gguf"), "max_tokens": 8}
    call = name in ("simulator", "llamacpp")
    check_provider(registry.find("provider", name), settings, call=call, key="sk-" + "x" * 40)


@pytest.mark.parametrize("name", list_conversation_protocols())
def test_protocols(name: str) -> None:
    check_protocol(registry.find("protocol", name), keys_of(name), base=ROOT / "jobs")


def test_a_family_without_a_run_records_nothing() -> None:
    space = load_space(resources.find("preference_space", "tech_support"))
    for name in {*own("family")} - FAMILY_JOBS.keys():
        assert not registry.find("family", name).fits(space)


@pytest.mark.parametrize("name", sorted({*own("family")} & FAMILY_JOBS.keys()))
def test_families(name: str, run_of: Callable[[str], Path]) -> None:
    family = registry.find("family", name)
    if name not in FAMILY_JOBS:  # read and never written
        check_family(family, ())
        return
    with RunReader(run_of(FAMILY_JOBS[name])) as reader:
        assert reader.family is family
        recorded = [family.read(data) for *_, data in reader.views[""].iterate_records()]
        check_family(family, recorded, space=reader.space)
        if name not in KNOWN_BY_CONTENT:
            check_family(family, space=reader.space)


@pytest.mark.parametrize("name", own("measure"))
def test_measures(name: str, run_of: Callable[[str], Path]) -> None:
    family = find_measures_of_other_families(EDUCATION).get(name, "education")
    check_measure(registry.find("measure", name), run_of(FAMILY_JOBS[family]))


@pytest.mark.parametrize("name", own("format"))
def test_formats(name: str, run_of: Callable[[str], Path]) -> None:
    format_ = registry.find("format", name)
    pairs = "pairs" in format_.needs
    made_by = "selfplay" if pairs else FORMAT_JOBS.get(name) or FAMILY_JOBS[format_.family or "education"]
    run = run_of(made_by)
    if pairs and not (run / "pairs").exists():
        edgen.open(run).pairs(by="probability")
    check_format(format_, run, options=FORMAT_OPTIONS.get(name))


class Lossy(type(EDUCATION)):  # type: ignore[misc]
    name = "lossy"

    def read(self, data: bytes) -> Any:
        known = super().read(data)
        made = msgspec.structs.replace(known.conversation, turns=known.turns[:-1])
        return msgspec.structs.replace(known, conversation=made)


def test_a_family_that_loses_a_turn_does_not_pass() -> None:
    with pytest.raises(ConformanceError, match="family 'lossy': does not read back what it records"):
        check_family(Lossy())


def test_a_protocol_that_remembers_does_not_pass() -> None:
    class Remembers(type(registry.find("protocol", "oneshot"))):  # type: ignore[misc]
        name = "remembers"
        count = 0

        def start(self, scenario: Any, replicate: int, prompts: Any, rules: Any) -> Any:
            Remembers.count += 1
            return super().start(scenario, replicate + Remembers.count, prompts, rules)

    with pytest.raises(
        ConformanceError, match="protocol 'remembers': the same replies lead to other requests"
    ):
        check_protocol(Remembers(), keys_of("oneshot"), base=ROOT / "jobs")


def test_a_reason_that_the_protocol_does_not_explain() -> None:
    class Tired(type(registry.find("protocol", "oneshot"))):  # type: ignore[misc]
        name = "tired"

        def start(self, *given: Any) -> Any:
            result = yield from super().start(*given)
            return Rejection("so_tired", "zzz") if isinstance(result, Rejection) else result

    with pytest.raises(ConformanceError, match="rejects with the reason 'so_tired', which its `reasons`"):
        check_protocol(Tired(), keys_of("oneshot"), base=ROOT / "jobs")


def test_a_provider_whose_identity_holds_the_key_does_not_pass() -> None:
    class Backend:
        model = "m"

        def __init__(self, key: str | None) -> None:
            self.identity = {"type": "simulator", "key": key}

        async def complete(self, request: Any) -> Reply:
            return Reply("yes")

        async def models(self) -> None:
            return None

        async def aclose(self) -> None: ...

    class Leaks(type(registry.find("provider", "simulator"))):  # type: ignore[misc]
        def create(self, config: Any, key: Any, link: Any) -> Any:
            return Backend(key.value)

    with pytest.raises(ConformanceError, match="differ in `identity`, or it depends on the key"):
        check_provider(Leaks())


def test_a_measure_whose_lines_are_too_wide_does_not_pass() -> None:
    class Wide(type(registry.find("measure", "overview")), OwnTexts):  # type: ignore[misc]
        name = "wide"

        def lines(self, value: Any) -> Any:
            yield "x" * 79

    with pytest.raises(ConformanceError, match="measure 'wide': its lines have one of 79 columns"):
        check_measure(Wide())


def test_a_measure_whose_columns_do_not_fit_does_not_pass(run_of: Callable[[str], Path]) -> None:
    class Odd(Measure[Any]):
        name = "odd"
        definition = "Nothing."

        def of_one(self, sample: Any, words: Any, space: Any) -> Any:
            return {"n": len(sample.turns), "of": 1}

    for aggregates, said in (
        ((Mean("gone"),), "gave the columns 'n', 'of', none of which its `aggregates` read"),
        ((Mean("n"), Mean("gone")), "no conversation has the column 'gone'"),
        ((Share("n", of="of"),), "which is not a whole number from 0 to the 1 in 'of'"),
        ((Mean("n"), Histogram("n")), "has two aggregates named 'n'"),
    ):
        measure = type("Odd", (Odd,), {"aggregates": aggregates})()
        with pytest.raises(ConformanceError, match=f"measure 'odd': .*{said}"):
            check_measure(measure, run_of("oneshot"))


def test_a_class_or_an_object_of_another_kind_does_not_pass() -> None:
    with pytest.raises(ConformanceError, match="is a class, not an object; write `OBJECT = Lossy"):
        check_family(Lossy)  # type: ignore[arg-type]
    for check in (check_provider, check_protocol, check_format, check_measure):
        with pytest.raises(
            ConformanceError, match=r"family 'lossy'|which is not derived from edgen\.plugin\."
        ):
            check(Lossy())  # type: ignore[operator]


def test_a_provider_with_another_identity_in_another_process_does_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = PROVIDER.replace("ANSWER", "return Reply('a\\ud800')")
    (tmp_path / "own_odd.py").write_text(
        code.replace('{"type": "odd"}', '{"type": "odd", "pid": os.getpid()}')
    )
    (tmp_path / "own_even.py").write_text(code)
    for name in ("own_odd", "own_even"):
        (tmp_path / f"{name}.py").write_text("import os\n" + (tmp_path / f"{name}.py").read_text())
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConformanceError, match="`identity` is another one in another process"):
        check_provider(importlib.import_module("own_odd").IT)
    even = importlib.import_module("own_even").IT
    check_provider(even)
    with pytest.raises(ConformanceError, match="returns a Reply with a lone surrogate"):
        check_provider(even, call=True)


def test_a_protocol_that_never_ends_does_not_pass() -> None:
    class Endless(type(registry.find("protocol", "oneshot"))):  # type: ignore[misc]
        name = "endless"

        def start(self, scenario: Any, replicate: int, prompts: Any, rules: Any) -> Any:
            request = next(super().start(scenario, replicate, prompts, rules))
            while True:
                yield request

    with pytest.raises(ConformanceError, match="asked 500 requests in one conversation and did not end"):
        check_protocol(Endless(), keys_of("oneshot"), base=ROOT / "jobs")


def test_a_format_whose_rows_no_file_holds_does_not_pass(run_of: Callable[[str], Path]) -> None:
    def rows(run: Any, chat: Any) -> Any:
        yield from (Row(one.split, {"id": float("nan")}) for one in run.conversations())

    odd = Format(name="odd", summary="Odd.", rows=rows, tables={"id": "a number"}, use="load it", chat=False)
    with pytest.raises(ConformanceError, match="gave the number nan in the column 'id'"):
        check_format(odd, run_of("oneshot"))
