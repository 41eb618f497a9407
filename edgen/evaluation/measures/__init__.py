"""The measures of a data set, one file each."""

from edgen.plugin.files import require_extra

require_extra("analysis", "Measures of a data set")
