"""What imports this first says, where numpy is missing, which extra has it. `quantiles` does without."""

from edgen.core.extras import require_extra

require_extra("analysis", "Statistics")
