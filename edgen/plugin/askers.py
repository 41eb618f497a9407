"""Names for askers: judges of pairs, annotators, writers, and askers about turns or conversations of a run.

    from edgen.plugin.askers import JudgeAsker, Verdict

An asker is a class in a file of its own, with an entry point of the group `edgen.askers` by its `name`.
CONTRIBUTING.md shows one of each. Second level (see `edgen.plugin`): these names may change in any minor
release; CHANGELOG.md lists changes.

JudgeAsker: `edgen pairs --signal NAME`. It gets a CandidatePair; select_turns returns the compared turns of a
    pair. It returns equally many Verdicts in both ORDERS.
AnnotatorAsker: `edgen annotate --labels NAME`. It returns labels for the units of an AskedUnit.
WriterAsker: `edgen annotate --write NAME`. Written: the useful texts; choose_texts finds them.
DeclaredAsker, TurnAsker: `edgen annotate --write NAME`, for its own kind of answer about each conversation,
    or each turn. ask_run, estimate_asking: the same from Python.
"""

from __future__ import annotations

from edgen.asking.annotators import AnnotatorAsker as AnnotatorAsker
from edgen.asking.comparisons import JudgeAsker as JudgeAsker
from edgen.asking.declared import DeclaredAsker as DeclaredAsker
from edgen.asking.declared import TurnAsker as TurnAsker
from edgen.asking.declared import ask_run as ask_run
from edgen.asking.declared import estimate_asking as estimate_asking
from edgen.asking.units import AskedUnit as AskedUnit
from edgen.asking.writers import WriterAsker as WriterAsker
from edgen.core.pair import Verdict as Verdict
from edgen.protocols.oracle import ORDERS as ORDERS
from edgen.protocols.oracle import CandidatePair as CandidatePair
from edgen.protocols.oracle import select_turns as select_turns
from edgen.protocols.writing import Written as Written
from edgen.protocols.writing import choose_texts as choose_texts
