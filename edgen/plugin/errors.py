"""Errors that say what a user has to change, beyond those of `edgen.plugin`.

    from edgen.plugin.errors import DataError

They are those of `edgen.errors`.

The promise of `edgen.plugin` does not cover these names: they may change in any minor release, which
CHANGELOG.md says.

EdgenError: the base of all. DataError, SpaceError, TemplateError, MachineError: an unusable file of that
sort. RunError: an unusable run folder. ShortError: less was made than was asked for.
"""

from __future__ import annotations

from edgen.plugin.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from edgen.core.errors import DataError as DataError
    from edgen.core.errors import EdgenError as EdgenError
    from edgen.core.errors import MachineError as MachineError
    from edgen.core.errors import RunError as RunError
    from edgen.core.errors import ShortError as ShortError
    from edgen.core.errors import SpaceError as SpaceError
    from edgen.core.errors import TemplateError as TemplateError
else:
    __getattr__ = names_from(
        __name__,
        {
            "edgen.core.errors": "DataError EdgenError MachineError RunError ShortError SpaceError TemplateError",
        },
    )
