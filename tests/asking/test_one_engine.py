"""Every asker is a declaration: the engine has the ledger, the loop, the estimate and the outcomes."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import edgen.asking
from edgen.asking.asker import Asker, FileAsker, PromptAsker, RunAsker
from edgen.asking.declared import DeclaredAsker, TurnAsker
from edgen.asking.runner import FileStart, RunStart, Start
from edgen.asking.units import UnitAsker

pytestmark = pytest.mark.unit

BASES = {Asker, FileAsker, RunAsker, PromptAsker, UnitAsker, DeclaredAsker, TurnAsker}
ENGINE = {"make_task", "make_fingerprint", "work_through", "count", "title"}  # no asker has these of its own
OF_STARTS = {"ask", "estimate", "estimate_calls"}
DECLARED = {"list_units", "read_unit", "ask", "keep"}


def find_subclasses(kind: type) -> Iterator[type]:
    """Yield a class and all classes that derive from it."""
    yield kind
    for one in kind.__subclasses__():
        yield from find_subclasses(one)


@pytest.fixture(scope="module", autouse=True)
def _all_modules() -> None:
    for module in pkgutil.iter_modules(edgen.asking.__path__):
        importlib.import_module(f"edgen.asking.{module.name}")


def test_askers_declare_and_the_engine_does_the_rest() -> None:
    shipped: dict[str, type[Asker[Any, Any]]] = {
        one.__name__: one
        for one in find_subclasses(Asker)
        if one not in BASES and one.__module__.startswith("edgen.")
    }
    assert {"JudgeAsker", "AnnotatorAsker", "WriterAsker", "RolloutAsker", "GrowthAsker"} <= shipped.keys()
    assert {name: found for name, one in shipped.items() if (found := ENGINE & vars(one).keys())} == {}
    assert {name: one.__abstractmethods__ for name, one in shipped.items() if one.__abstractmethods__} == {}
    lacking = {
        name: DECLARED - {attr for base in one.__mro__[:-1] for attr in vars(base)}
        for name, one in shipped.items()
    }
    assert not any(lacking.values())


def test_starts_ask_and_estimate_in_one_way() -> None:
    own = {
        one.__name__: found
        for one in find_subclasses(Start)
        if one not in (Start, RunStart, FileStart) and (found := OF_STARTS & vars(one).keys())
    }
    assert own == {}
