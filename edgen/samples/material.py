"""What the measures are told of: a data set, read anew each time it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from edgen.quality.model import Fate, Sample
from edgen.space import Space

NUMBERED = 1 << 40  # scenarios of one path, where several paths are one data set


@dataclass(frozen=True)
class Material:
    """A data set to be measured. `name` is for people, `sources` are the paths it was read from.

    `samples()` gives every accepted conversation, `fates()` what became of everything planned (None for
    files, which know no plan). `calibration` tells how the conversations' own probabilities agree with judges,
    `{"judges": [{"judge", "model", "compare", "calibration"}]}` as `edgen pairs --report` has them, where there
    are pairs. `count` is how many samples there will be, None where nobody knows yet. `unread` counts,
    by reason, records that are none, and is complete when `samples()` is at its end. `notes` are sentences
    about what limits it.
    """

    name: str
    sources: tuple[str, ...]
    samples: Callable[[], Iterator[Sample]]
    fates: Callable[[], Iterator[Fate] | None] = lambda: None
    space: Space | None = None
    arm: str | None = None
    count: int | None = None
    calibration: dict[str, Any] | None = None
    unread: Counter[str] = field(default_factory=Counter)
    notes: tuple[str, ...] = ()
