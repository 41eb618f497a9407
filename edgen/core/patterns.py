"""Regular expressions that are compiled when they are first used: edgen has hundreds, and a command needs few of them."""

from __future__ import annotations

import re
from typing import Any, cast


def compile_later(expression: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` gives, compiled at the first use of any of its methods. An expression that is none shows then."""
    return cast("re.Pattern[str]", _Pattern(expression, flags))


class _Pattern:
    def __init__(self, expression: str, flags: int) -> None:
        self._wanted = (expression, flags)

    def __getattr__(self, name: str) -> Any:
        """Only asked for what is not here yet: each method once."""
        if name == "_compiled":
            self._compiled = re.compile(*self._wanted)
            return self._compiled
        method = getattr(self._compiled, name)
        setattr(self, name, method)
        return method
