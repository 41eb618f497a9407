"""The measures of a data set, one file each."""

from edgen.core.extras import require_extra

require_extra("analysis", "Measures of a data set")
