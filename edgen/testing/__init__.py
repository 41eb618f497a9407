"""Checks that a package runs on the objects that it adds to edgen.

    from edgen.testing import check_measure
    from my_package.questions import MEASURE

    def test_conformance():
        check_measure(MEASURE)

Each check uses the object as edgen does, also in a second process. At the first fault, it raises
ConformanceError, an AssertionError with a sentence. The package need not be installed. No check uses the
network: `check_provider` calls a backend only on request. docs/plugins.md lists the rules of each kind.

These names stay, as those of `edgen.plugin` do. A later release may check more.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from edgen.testing.check import ConformanceError as ConformanceError
    from edgen.testing.families import check_family as check_family
    from edgen.testing.formats import check_format as check_format
    from edgen.testing.measures import check_measure as check_measure
    from edgen.testing.protocols import check_protocol as check_protocol
    from edgen.testing.providers import check_provider as check_provider

_HOMES = {
    "edgen.testing.check": "ConformanceError",
    "edgen.testing.families": "check_family",
    "edgen.testing.formats": "check_format",
    "edgen.testing.measures": "check_measure",
    "edgen.testing.protocols": "check_protocol",
    "edgen.testing.providers": "check_provider",
}
__all__ = [*_HOMES.values()]


def __getattr__(name: str) -> Any:
    from edgen.plugin import import_name

    return import_name(__name__, name, _HOMES)
