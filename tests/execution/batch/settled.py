"""`edgen` with a shorter wait: a lost creation of a batch counts as settled after two seconds
instead of ten minutes."""

from __future__ import annotations

from edgen.__main__ import main
from edgen.providers.anthropic.batches import AnthropicBatches

if __name__ == "__main__":
    AnthropicBatches.settles = 2.0
    main()
