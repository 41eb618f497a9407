"""What the measures find, as values: what `edgen stats --json` prints and the report draws.

Shares and rates are in [0, 1]. Intervals are 95%, clustered by scenario (`pairing.intervals`).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from edgen.pairing.intervals import Estimate


class Bin(msgspec.Struct, frozen=True):
    """A bar of a histogram: low <= value < high, the last one with its end."""

    low: float
    high: float
    count: int


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers summed up; the quantiles are of the data itself, and all are None where `n` is 0."""

    n: int
    mean: float | None = None
    sd: float | None = None
    min: float | None = None
    p5: float | None = None
    p25: float | None = None
    median: float | None = None
    p75: float | None = None
    p95: float | None = None
    max: float | None = None
    bins: tuple[Bin, ...] = ()


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is. `defects`: records with each kind of debris; `unread`: records that are none, by why."""

    records: int
    splits: dict[str, int]  # train, test, none
    simulated: int
    markers: dict[str, int]  # suffix, own_turn, inside, absent
    ended_by: dict[str, int]  # Teacher, Student, nobody
    defects: dict[str, int] = {}
    repairs: dict[str, int] = {}
    unread: dict[str, int] = {}


class Lengths(msgspec.Struct, frozen=True, kw_only=True):
    """Turns a conversation (as the files have them), words a conversation, words a turn by role."""

    turns: Distribution
    words: Distribution
    words_per_turn: dict[str, Distribution]  # Teacher, Student


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """Who has how much of the talk. `begins`: conversations by who speaks first."""

    teacher_words: Distribution  # the teacher's share of a conversation's words
    teacher_turns: Distribution  # the teacher's share of its turns
    begins: dict[str, int]


class Growth(msgspec.Struct, frozen=True):
    """So many different words (types) among the first so many words (tokens)."""

    tokens: int
    types: int


class Diversity(msgspec.Struct, frozen=True, kw_only=True):
    """`distinct`: n -> different n-grams / n-grams of the whole, and of blocks of `block_words` words each
    (`distinct_in_blocks`, mean over blocks), which does not fall as the data grow. `distinct_error`: the standard
    error of `distinct` as a share of it, 0 where all were counted. `self_bleu`: mean BLEU of
    sampled conversations against the other sampled ones; `heaps`: types = k * tokens ** beta."""

    tokens: int
    types: int
    distinct: dict[str, float]  # "1", "2", "3"
    distinct_error: float
    distinct_in_blocks: dict[str, float]
    block_words: int
    growth: tuple[Growth, ...]
    heaps_k: float | None
    heaps_beta: float | None
    self_bleu: float | None
    self_bleu_sampled: int


class Alike(msgspec.Struct, frozen=True):
    """Two conversations that are nearly the same; `similarity` is the Jaccard index of their shingles."""

    a: str
    b: str
    similarity: float


class Duplicates(msgspec.Struct, frozen=True, kw_only=True):
    """`exact`: conversations that say the same to the letter as an earlier one. `near`: those with another at least `threshold`
    alike, exact ones included; `within` by split, `across`: test conversations with such a one in train."""

    threshold: float
    exact: int
    near: int
    share: Estimate | None
    within: dict[str, int]
    across: int
    examples: tuple[Alike, ...]


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """Groups (topics, personas) of the test side, how many of them train has too, and the test
    conversations in these."""

    test_groups: int
    shared_groups: int
    test_conversations: int
    shared_conversations: int
    share: float | None  # of test conversations


class Leakage(msgspec.Struct, frozen=True, kw_only=True):
    """What of the test side was to be seen in train; None where nothing tells the sides."""

    topic: Shared | None
    persona: Shared | None
    topic_and_persona: Shared | None
    near_duplicates: int | None


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """One value of a dimension, and what became of the conversations planned with it. For files, which know no plan,
    all that is there counts as planned and accepted."""

    value: str
    planned: int
    accepted: int
    rejected: int
    failed: int
    pending: int
    survived: Estimate | None  # share accepted of what was settled
    p_holm: float | None = None  # that its share is the others', adjusted for all values of all dimensions


class Dimension(msgspec.Struct, frozen=True, kw_only=True):
    """One dimension of the space. `size` is the space's, `planned` counts the values that something was planned with,
    `seen` those that something accepted has. `unseen` lists values (at most 50) that were planned and never
    accepted, `unplanned` values of the space (at most 50) that were never planned; of files, that no record has.
    `evenness`: entropy of the accepted over log(size), 1 where all come equally often."""

    name: str
    size: int
    seen: int
    evenness: float | None
    values: tuple[Value, ...]  # the 200 most often planned
    unseen: tuple[str, ...]
    planned: int = 0
    unplanned: tuple[str, ...] = ()


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that was planned and has nothing accepted, with the reasons."""

    cell: dict[str, str]
    planned: int
    reasons: dict[str, int]


class Heat(msgspec.Struct, frozen=True, kw_only=True):
    """Counts over two dimensions: rows[i] x columns[j]. At most 30 of each, the most often planned."""

    row_dimension: str
    column_dimension: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    planned: tuple[tuple[int, ...], ...]
    accepted: tuple[tuple[int, ...], ...]


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """The space's cells against the plan. `cells` is None where no space is known; `lost` are examples, `lost_cells` counts
    them. `reasons`: why conversations were not accepted -> how many."""

    planned: int
    accepted: int
    cells: int | None
    planned_cells: int
    accepted_cells: int
    lost_cells: int
    lost: tuple[Lost, ...]
    dimensions: tuple[Dimension, ...]
    heat: tuple[Heat, ...]  # student_preference x teacher_preference; student_reaction x teacher_reaction
    reasons: dict[str, int] = {}


class Adherence(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the conversations keep to their scenarios. Each is a share of the conversations that it can be
    told of; `untold`: those it cannot, by measure. `by` is "keywords" or a judge's name."""

    by: str
    n: int
    student_asks: Estimate | None  # the student asks for the way it prefers
    student_reaction: Estimate | None  # the student's stated reaction shows
    teacher_reaction: Estimate | None
    teacher_keeps: Estimate | None  # the teacher's preferred way shows, to the end
    teacher_leaves: Estimate | None  # the teacher goes over to the student's way
    untold: dict[str, int] = {}
    agreement: dict[str, float | None] = {}  # of a judge with the keywords, Cohen's kappa by measure
    note: str | None = None


class Leaks(msgspec.Struct, frozen=True, kw_only=True):
    """Conversations in which a side says word for word what only the other side's description holds, before the other said it."""

    conversations: int
    share: Estimate | None
    by: dict[str, int]  # the scenario's field -> conversations
    examples: tuple[str, ...]  # ids


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """`asked`: the student's turns that ask to be told the answer; `given`: those whose next turn of the teacher
    tells without asking back. `telling`: share of the teacher's turns without a question."""

    asked: int
    given: int
    rate: Estimate | None
    telling: Estimate | None


class ProbabilityBy(msgspec.Struct, frozen=True, kw_only=True):
    """The probability that the student understood, in conversations of one kind."""

    distribution: Distribution
    mean: Estimate | None


class Probability(msgspec.Struct, frozen=True, kw_only=True):
    """`match`: both prefer the same way; `mismatch`: they do not; `untold`: no keyword tells."""

    missing: int
    all: ProbabilityBy
    by: dict[str, ProbabilityBy]
    difference: Estimate | None  # mean in matches minus mean in mismatches


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. `sources`: what was measured; `definitions`: measure -> how it is defined and where that is from;
    `notes`: what limits it, in sentences."""

    name: str
    sources: tuple[str, ...]
    overview: Overview
    lengths: Lengths
    balance: Balance
    diversity: Diversity
    duplicates: Duplicates
    leakage: Leakage
    coverage: Coverage
    adherence: tuple[Adherence, ...]
    leaks: Leaks
    answers: Answers
    probability: Probability
    calibration: dict[str, Any] | None = None
    definitions: dict[str, str] = {}
    notes: tuple[str, ...] = ()


MeasureName = Literal[
    "overview", "lengths", "balance", "diversity", "duplicates", "leakage", "coverage", "adherence", "leaks",
    "answers", "probability", "calibration",
]  # fmt: skip
