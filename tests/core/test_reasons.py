"""Reasons for rejections: edgen's own, and those that protocols declare."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from edgen.core import registry
from edgen.core.values import Rejection, RejectionReason
from edgen.execution.early_stop import advise
from edgen.protocols.oneshot import Oneshot
from edgen.protocols.reasons import (
    REASONS,
    DeclaredReason,
    explain_own_reasons,
    find_reason,
    list_reason_flaws,
)
from tests import ROOT

pytestmark = pytest.mark.unit

TIRED = DeclaredReason(
    code="tired", says="the patient is too tired", advice="Let them rest.", personal="you fell asleep"
)


class Clinic(Oneshot):
    name = "clinic"
    reasons = (TIRED,)


def test_every_reason_of_edgens_own_is_explained() -> None:
    assert REASONS.keys() == {*map(str, RejectionReason)}
    assert all(one.says for one in REASONS.values())


def test_a_rejection_takes_a_protocols_own_reason() -> None:
    rejection = Rejection("tired", "zzz", "night")
    assert (rejection.reason, rejection.code) == ("tired", "tired:night")
    assert msgspec.structs.replace(rejection, of="").code == "tired"


def test_a_known_reason_in_words_is_edgens_own() -> None:
    assert Rejection("truncated", "cut").reason is RejectionReason.TRUNCATED


@pytest.mark.parametrize("reason", ["", "Tired", "two words", "9th", "a" * 41, "gate:short", "müde", None, 7])
def test_a_reason_that_is_no_name_is_refused(reason: object) -> None:
    with pytest.raises(ValueError, match=r"an invalid reason: .*; use up to 40 lower-case letters"):
        Rejection(reason, "zzz")  # type: ignore[arg-type]


def test_a_declared_reason_is_found_by_the_protocol() -> None:
    with registry.register_temporarily("protocol", "clinic", Clinic()):
        assert find_reason("tired:night", "clinic") is TIRED
        assert find_reason("tired") is None
        assert find_reason("loop", "clinic") is REASONS["loop"]
        assert explain_own_reasons(["loop", "tired:night", "odd"], "clinic") == {"tired": TIRED.says}
        assert advise(Counter(tired=3, odd=1), protocol="clinic") == TIRED.advice
        assert advise(Counter(odd=3), "otherwise", "clinic") == "otherwise"
    assert find_reason("tired", "clinic") is None, "the protocol is no longer installed"


@pytest.mark.parametrize(
    ("reasons", "flaw"),
    [
        ([TIRED], "not a tuple of DeclaredReason"),
        (("tired",), "not a tuple of DeclaredReason"),
        ((DeclaredReason(code="So tired", says="x"),), "not a short lower-case name: 'So tired'"),
        ((DeclaredReason(code="loop", says="x"),), "the reason loop, which is edgen's own"),
        ((DeclaredReason(code="tired", says=" "),), "the reason tired without a clause"),
    ],
)
def test_flaws_of_declared_reasons(reasons: object, flaw: str) -> None:
    (found,) = list_reason_flaws(reasons)
    assert flaw in found


def test_reasons_of_edgens_own_protocols_have_no_flaws() -> None:
    for protocol in registry.find_all("protocol"):
        assert list_reason_flaws(protocol.reasons) == []


def test_the_page_on_protocols_explains_every_reason() -> None:
    page = (ROOT / "docs" / "protocols.md").read_text(encoding="utf-8")
    for one in REASONS.values():
        assert f"- `{one.code}`: {one.says}" in page
