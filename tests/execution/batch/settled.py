"""`edgen`, which takes a create that nobody heard of for settled after two seconds, not after the ten minutes that a
provider may take."""

from __future__ import annotations

from edgen.__main__ import main
from edgen.providers.anthropic.batches import AnthropicBatches

if __name__ == "__main__":
    AnthropicBatches.settles = 2.0
    main()
