"""Names for families beyond those of `edgen.plugin`.

    from edgen.plugin.families import filed_index

The promise of `edgen.plugin` does not cover these names: they may change in any minor release, which
CHANGELOG.md says.

Role: the name of a role, a text. filed_index: the number of a stored record's scenario.
"""

from __future__ import annotations

from edgen.plugin.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from edgen.core.values import Role as Role
    from edgen.families.base import filed_index as filed_index
else:
    __getattr__ = names_from(
        __name__,
        {
            "edgen.core.values": "Role",
            "edgen.families.base": "filed_index",
        },
    )
