"""Errors that say what a user has to change, in addition to those of `edgen.plugin`.

    from edgen.plugin.errors import DataError

They are also in `edgen.errors`.

Second level (see `edgen.plugin`): these names may change in any minor release; CHANGELOG.md lists changes.

EdgenError: the base of all errors. InputError: the base of errors about a user's input; Problem: one of its
problems, with its place. UsageError, JobError: an unusable argument; an unusable job. DataError, SpaceError,
TemplateError: an unusable file of data, a space or a template. FileError: the base of errors about files.
RunError: an unusable run folder. ShortError: fewer results than requested.
"""

from __future__ import annotations

from edgen.core.errors import DataError as DataError
from edgen.core.errors import EdgenError as EdgenError
from edgen.core.errors import FileError as FileError
from edgen.core.errors import InputError as InputError
from edgen.core.errors import JobError as JobError
from edgen.core.errors import Problem as Problem
from edgen.core.errors import RunError as RunError
from edgen.core.errors import ShortError as ShortError
from edgen.core.errors import SpaceError as SpaceError
from edgen.core.errors import TemplateError as TemplateError
from edgen.core.errors import UsageError as UsageError
