"""The five objects pass edgen's conformance checks of their kinds."""

from edgen_example.canned import PROVIDER
from edgen_example.notes import FAMILY
from edgen_example.questions import MEASURE
from edgen_example.script import FORMAT
from edgen_example.teach_back import PROTOCOL

from edgen.testing import check_family, check_format, check_measure, check_protocol, check_provider


def test_provider() -> None:
    check_provider(PROVIDER, {"answers": ["Yes.", "No."]}, call=True)


def test_protocol() -> None:
    check_protocol(PROTOCOL)


def test_family() -> None:
    check_family(FAMILY)


def test_format() -> None:
    check_format(FORMAT)


def test_measure() -> None:
    check_measure(MEASURE)
