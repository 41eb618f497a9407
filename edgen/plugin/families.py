"""Names for families, in addition to those of `edgen.plugin`.

    from edgen.plugin.families import read_filed_index

Second level (see `edgen.plugin`): these names may change in any minor release; CHANGELOG.md lists changes.

Optional parts of a family: KindDefaults, default roles, templates, measures and splits of its spaces;
LayoutChecks, checks beyond the schema. FamilyBySpace: a family whose `fits` is in class attributes. Role: the
name of a role, a text. FiledRecord: a record of a file of any origin. make_filed_record, read_filed_turns,
read_filed_index: its value, its turns, and the number of its scenario. write_values, read_values: a
scenario's values as JSON. family_of, defaults_of: the family of a space, and its KindDefaults. TurnScene,
Scenes: contexts of a conversation besides its scenario. with_marker, without_marker: the end marker.
"""

from __future__ import annotations

from edgen.core.values import Role as Role
from edgen.families.base import FamilyBySpace as FamilyBySpace
from edgen.families.base import FiledRecord as FiledRecord
from edgen.families.base import Scenes as Scenes
from edgen.families.base import TurnScene as TurnScene
from edgen.families.base import defaults_of as defaults_of
from edgen.families.base import family_of as family_of
from edgen.families.base import make_filed_record as make_filed_record
from edgen.families.base import read_filed_index as read_filed_index
from edgen.families.base import read_filed_turns as read_filed_turns
from edgen.families.base import read_values as read_values
from edgen.families.base import with_marker as with_marker
from edgen.families.base import without_marker as without_marker
from edgen.families.base import write_values as write_values
from edgen.families.reader import KindDefaults as KindDefaults
from edgen.validation.layout import LayoutChecks as LayoutChecks
