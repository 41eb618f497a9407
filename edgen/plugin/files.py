"""Functions that read and write files, with bounds, and with errors that name the place.

    from edgen.plugin.files import read_text, read_yaml

Second level (see `edgen.plugin`): these names may change in any minor release; CHANGELOG.md lists changes.

Reading
    read_text, read_regular: a file's text or bytes. read_yaml, convert: YAML, and values of a typed struct
        with all problems at once. read_data, read_records, lines_of, cut: records, and the lines of a file of
        them.
    suggest_name, shorten_word: for messages: the name that was probably meant, a shortened value.
Writing
    write_whole, write_lines, new_folder: atomic writes. explain_write_errors: errors of the disk in a
        sentence. cache_file: a file in the user's cache. as_text, as_key, as_number, flow: YAML.
Folders
    FolderKind: a kind of folders that jobs can name.
Extras
    require_extra, use_extra, find_missing_modules: packages that an extra of edgen installs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgen import plugin
from edgen.core.files import explain_write_errors as explain_write_errors
from edgen.core.files import new_folder as new_folder
from edgen.core.files import read_regular as read_regular
from edgen.core.files import write_lines as write_lines
from edgen.core.files import write_whole as write_whole
from edgen.core.resources import FolderKind as FolderKind
from edgen.core.resources import cache_file as cache_file
from edgen.core.yaml_text import as_key as as_key
from edgen.core.yaml_text import as_number as as_number
from edgen.core.yaml_text import as_text as as_text
from edgen.core.yaml_text import flow as flow
from edgen.core.yaml_values import convert as convert
from edgen.core.yaml_values import read_text as read_text
from edgen.core.yaml_values import read_yaml as read_yaml
from edgen.core.yaml_values import shorten_word as shorten_word
from edgen.core.yaml_values import suggest_name as suggest_name

if TYPE_CHECKING:
    from edgen.core.extras import find_missing_modules as find_missing_modules
    from edgen.core.extras import require_extra as require_extra
    from edgen.core.extras import use_extra as use_extra
    from edgen.validation.reading import cut as cut
    from edgen.validation.reading import lines_of as lines_of
    from edgen.validation.reading import read_data as read_data
    from edgen.validation.reading import read_records as read_records

_LATER = {
    "edgen.core.extras": "find_missing_modules require_extra use_extra",
    "edgen.validation.reading": "cut lines_of read_data read_records",
}
"""The names imported at their first use, by module."""

__getattr__, __dir__ = plugin.import_later(__name__, _LATER)
