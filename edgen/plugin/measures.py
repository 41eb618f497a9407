"""Names for measures, in addition to those of `edgen.plugin`: pictures, and lines of the terminal.

    from edgen.plugin.measures import Block, label_with_arm

Second level (see `edgen.plugin`): these names may change in any minor release; CHANGELOG.md lists changes.

Inputs and results of a measure
    OwnComparisons: the optional part of a measure with its own comparison of arms.
    Shared, ArmResult, Compared: inputs of the parts and panels. Value: a column's value in expressions.
    Crossed, Examples: further aggregates.
    Aggregate: the base of all aggregates. ByKey: an aggregate for each key. roles_of, sort_counts: orders of
        keys.
    Panel, TablePanel, Sentence: pictures, tables and sentences of the report.
    JudgeAnswers: the part of the measure to which a judge's answers are added. JudgeAsking: the request of
        the judge.
    MOST_NUMBER: the largest number of a column. PlannedOutcome: a planned scenario and its outcome.
Pictures
    Picture, Table: for the report. Block, Drawing: a part of the report's page. Curve, Curves, Cells,
        Intervals, Axis: parts of a picture.
    SHARES, PROBABILITIES: axes. ROLES: Teacher and Student. series_colour, shade_of: colours.
    label_with_arm, sentence_of_arm, describe_rows: words with an arm's name. interval_of, share_of: numbers
        with intervals.
Lines of the terminal
    row, rows, LABEL, wrap: lines with a label. with_interval, share_with_interval, join_counts: values.
        shorten_line: texts. render_rows: the rows of a measure's aggregates.
"""

from __future__ import annotations

from edgen.core.values import ROLES as ROLES
from edgen.evaluation.aggregate_sums import MOST_NUMBER as MOST_NUMBER
from edgen.evaluation.aggregate_sums import sort_counts as sort_counts
from edgen.evaluation.aggregates import Aggregate as Aggregate
from edgen.evaluation.aggregates import ByKey as ByKey
from edgen.evaluation.aggregates import Crossed as Crossed
from edgen.evaluation.aggregates import Examples as Examples
from edgen.evaluation.aggregates import roles_of as roles_of
from edgen.evaluation.compared import Compared as Compared
from edgen.evaluation.drawings import PROBABILITIES as PROBABILITIES
from edgen.evaluation.drawings import SHARES as SHARES
from edgen.evaluation.drawings import Axis as Axis
from edgen.evaluation.drawings import Block as Block
from edgen.evaluation.drawings import Cells as Cells
from edgen.evaluation.drawings import Curve as Curve
from edgen.evaluation.drawings import Curves as Curves
from edgen.evaluation.drawings import Drawing as Drawing
from edgen.evaluation.drawings import Intervals as Intervals
from edgen.evaluation.drawings import Picture as Picture
from edgen.evaluation.drawings import Table as Table
from edgen.evaluation.drawings import describe_rows as describe_rows
from edgen.evaluation.drawings import interval_of as interval_of
from edgen.evaluation.drawings import label_with_arm as label_with_arm
from edgen.evaluation.drawings import sentence_of_arm as sentence_of_arm
from edgen.evaluation.drawings import series_colour as series_colour
from edgen.evaluation.drawings import shade_of as shade_of
from edgen.evaluation.drawings import share_of as share_of
from edgen.evaluation.measure import JudgeAnswers as JudgeAnswers
from edgen.evaluation.measure import JudgeAsking as JudgeAsking
from edgen.evaluation.measure import OwnComparisons as OwnComparisons
from edgen.evaluation.panels import ArmResult as ArmResult
from edgen.evaluation.panels import Panel as Panel
from edgen.evaluation.panels import Sentence as Sentence
from edgen.evaluation.panels import TablePanel as TablePanel
from edgen.evaluation.rows import render_rows as render_rows
from edgen.evaluation.sample import PlannedOutcome as PlannedOutcome
from edgen.evaluation.shared import Shared as Shared
from edgen.evaluation.terminal import LABEL as LABEL
from edgen.evaluation.terminal import join_counts as join_counts
from edgen.evaluation.terminal import row as row
from edgen.evaluation.terminal import rows as rows
from edgen.evaluation.terminal import share_with_interval as share_with_interval
from edgen.evaluation.terminal import shorten_line as shorten_line
from edgen.evaluation.terminal import with_interval as with_interval
from edgen.evaluation.terminal import wrap as wrap
from edgen.expressions.language import Value as Value
