"""What is measured: a data set, read anew each time it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from edgen.evaluation.sample import PlannedOutcome, Sample
from edgen.families.base import Family
from edgen.space import Space, SpaceRole

SCENARIOS_A_PATH = 1 << 40  # keeps the scenarios of several paths apart where they are one data set


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set to be measured. `name` is for people, `sources` are the paths it was read from.

    `family` is what kind of conversations these are, None for several kinds; `roles` are those that may speak, with
    what each may know, () where nothing tells. `arm` is the arm of a run that it is, "" without arms. `samples()` gives every accepted conversation, `plan()` the outcome of everything planned (None for
    files, which know no plan). `calibration` tells how the conversations' own probabilities agree with judges,
    `{"judges": [{"judge", "model", "compare", "calibration"}]}` as `edgen pairs --report` has them, where there
    are pairs. `count` is how many samples there will be, None where nobody knows yet. `unread` counts records
    that cannot be read, by reason, and is complete when `samples()` is at its end. `notes` are sentences
    about what limits the data set.
    """

    name: str
    sources: tuple[str, ...] = ()
    samples: Callable[[], Iterator[Sample]]
    plan: Callable[[], Iterator[PlannedOutcome] | None] = lambda: None
    family: Family | None
    roles: tuple[SpaceRole, ...]
    space: Space | None = None
    arm: str = ""
    count: int | None = None
    calibration: dict[str, Any] | None = None
    unread: Counter[str] = field(default_factory=Counter)
    notes: tuple[str, ...] = ()
