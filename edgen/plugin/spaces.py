"""Names for layouts of spaces, under an entry point of `edgen.space_layouts`.

    from edgen.plugin.spaces import SpaceLayout

Second level (see `edgen.plugin`): these names may change in any minor release; CHANGELOG.md lists changes.

SpaceLayout: dimensions and roles that a domain names. LaidOutDimension: one of its dimensions. Agreement:
whether the roles of a scenario want the same.
find_layout: the layout of a space with these dimensions.
name_field: the name of an entry's field among a scenario's columns.
"""

from __future__ import annotations

from edgen.core.space_layouts import Agreement as Agreement
from edgen.core.space_layouts import LaidOutDimension as LaidOutDimension
from edgen.core.space_layouts import SpaceLayout as SpaceLayout
from edgen.core.space_layouts import find_layout as find_layout
from edgen.core.space_layouts import name_field as name_field
