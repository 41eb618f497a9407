"""Names for families beyond those of `edgen.plugin`.

    from edgen.plugin.families import filed_index

The promise of `edgen.plugin` does not cover these names: they may change in any minor release, which
CHANGELOG.md says.

Role: the name of a role, a text. filed_index: the number of a stored record's scenario.
family_of: the family of a space. Dialogue: the layout of every space but the one of five lists, to build on.
dimension_groups: what scenarios are split by.
Scene, Scenes: what a conversation is about besides its scenario. with_marker, without_marker: the end marker.
"""

from __future__ import annotations

from edgen.plugin.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from edgen.core.values import Role as Role
    from edgen.families.base import Scene as Scene
    from edgen.families.base import Scenes as Scenes
    from edgen.families.base import dimension_groups as dimension_groups
    from edgen.families.base import family_of as family_of
    from edgen.families.base import filed_index as filed_index
    from edgen.families.base import with_marker as with_marker
    from edgen.families.base import without_marker as without_marker
    from edgen.families.dialogue import Dialogue as Dialogue
else:
    __getattr__ = names_from(
        __name__,
        {
            "edgen.families.dialogue": "Dialogue",
            "edgen.core.values": "Role",
            "edgen.families.base": "Scene Scenes dimension_groups family_of filed_index with_marker without_marker",
        },
    )
