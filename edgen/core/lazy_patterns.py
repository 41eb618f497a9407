"""Regular expressions that are compiled at first use: edgen has hundreds, and a command needs few of them."""

from __future__ import annotations

import re
from typing import Any, cast


def compile_later(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled at first use. An invalid expression fails at first use, not at
    import."""
    return cast("re.Pattern[str]", _Pattern(expression, flags))


class _Pattern:
    def __init__(self, expression: str, flags: int) -> None:
        self._wanted = (expression, flags)

    def __getattr__(self, name: str) -> Any:
        """Return a method; called only once per method."""
        if name == "_compiled":
            self._compiled = re.compile(*self._wanted)
            return self._compiled
        method = getattr(self._compiled, name)
        setattr(self, name, method)
        return method
