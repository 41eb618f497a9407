"""An import guard that names the extra if numpy is missing. `quantiles` does not need it."""

from edgen.core.extras import require_extra

require_extra("analysis", "Statistics")
