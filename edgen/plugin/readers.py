"""Names for readers of data sets in layouts of their own.

    from edgen.plugin.readers import DataSetReader, make_verbatim_record

Second level (see `edgen.plugin`): these names may change in any minor release; CHANGELOG.md lists changes.

DataSetReader: a reader of one layout, with an entry point in the group `edgen.readers`. Its optional parts
are those of a family, and TextLayout: files of lines.
make_verbatim_record: the value of a record with unchanged texts. Piece: a record as it is cut from a file.
"""

from __future__ import annotations

from edgen.families.parts import make_verbatim_record as make_verbatim_record
from edgen.families.reader import DataSetReader as DataSetReader
from edgen.families.reader import TextLayout as TextLayout
from edgen.validation.stream import Piece as Piece
