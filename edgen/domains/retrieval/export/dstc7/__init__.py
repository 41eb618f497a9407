"""DSTC7's track 1 (Gunasekara et al., DSTC7 2019): choose the next utterance among many, in five sub-tasks.

An example is a conversation cut before an agent's turn, with at least three turns before the cut.
"""

from __future__ import annotations

from edgen.domains.retrieval.export import REASONS
from edgen.domains.retrieval.export.dstc7.examples import rows
from edgen.domains.retrieval.export.dstc7.files import ExampleFiles
from edgen.domains.retrieval.export.dstc7.options import Dstc7Options
from edgen.domains.retrieval.export.msdialog import WHO
from edgen.plugin import Format, FormatCard, FormatLayout
from edgen.plugin.formats import DataTable, Tried

FORMAT = Format(
    name="dstc7",
    summary="Conversations cut before an agent's turn, with a hundred candidates for it, as DSTC7's track 1 "
    "has them.",
    rows=rows,
    card=FormatCard(
        reasons={
            "unseen": "it is on the run's test side, which is for tests of the second kind (--tests 2)",
            **REASONS,
            "no_target": "no agent speaks after three turns or more",
        },
        notes=(
            WHO,
            (
                "An example ends before an Agent's turn, with at least three turns before it. A repeated "
                "context is left out."
            ),
            (
                "The right answers of the test side are only in the table of responses: example, "
                "candidates and utterance, separated by tabs."
            ),
            (
                "No wrong candidate is equal or nearly equal (a Jaccard index of word 3-grams of at least "
                "0.8) to any text that follows the same context in the run, alternatives included. No two "
                "have the same words."
            ),
            (
                "Wrong candidates are agents' texts from the example's own side, so a text's "
                "presence in training does not show that it is wrong. If a side is too small, the rest is "
                "from the train side; train contains no text of dev or test."
            ),
            "A candidate's id depends on its text alone. White space within an utterance is one space.",
        ),
        tags=("response-selection", "retrieval"),
        tasks=("text-ranking",),
        tried=(
            Tried(
                library="ParlAI",
                version="1.7.2",
                day="2026-11-27",
                what="its DSTC7Teacher, under Python 3.8.18 with torch 1.12.1, returned every example of "
                "train, valid and test with its right answer.",
            ),
            Tried(
                library="noesis_dataset",
                version="aab03b8",
                day="2026-11-27",
                what="the noesis.dataset.Dataset of github.com/IBM/dstc-noesis took every example of sub-tasks "
                "1, 3, 4 and 5 that has its right answer; it leaves the others out.",
            ),
            Tried(
                library="ctinray_dstc7",
                version="f6637c8",
                day="2026-11-27",
                what="the prepreprocess_advising.py of github.com/CTinRay/DSTC7 took every example of an "
                "advising run and found the courses of every profile.",
            ),
        ),
    ),
    tables=(
        DataTable(
            {
                "data-split": "train, dev or test",
                "example-id": "the conversation's id and the number of the turn to choose, from 1",
                "messages-so-far": "all earlier turns: `speaker` and `utterance` of each",
                "options-for-correct-answers": "the right answer: `candidate-id` and `utterance`; `NONE` "
                "if it is not among the candidates; in sub-task 2 also all "
                "equal or nearly equal texts of the pool, in 3 its paraphrases; not in the "
                "test file",
                "options-for-next": "the candidates in random order: `candidate-id` and `utterance`; not "
                "in sub-task 2, whose examples share the pool",
                "scenario": "the sub-task",
                "profile": "if the space has courses, but not in sub-task 2: `Aggregated` (preferences by "
                "fields of the knowledge file), `Courses` (`Prior`, `Suggested`), `Term`, "
                "`Standing`; in the test file what the agent may know",
            }
        ),
        DataTable({"candidate-id": "its id in every file", "utterance": "the text of the candidate"}, "pool"),
        DataTable(
            {
                "data-split": "train or dev",
                "dialog-id": "the conversation",
                "messages": "its turns: `speaker`, `utterance`, `paraphrases`",
            },
            "dialogs",
        ),
    ),
    use="""\
import glob, json
train = json.load(open(*glob.glob("THIS_FOLDER/*_train_subtask_*.json"), encoding="utf-8"))
# edgen baseline THIS_FOLDER/…_test_subtask_1.json -o ranking.json
# edgen score THIS_FOLDER/…_responses_subtask_1.tsv ranking.json""",
    layout=FormatLayout(files=ExampleFiles),
    chat=False,
    Options=Dstc7Options,
)
