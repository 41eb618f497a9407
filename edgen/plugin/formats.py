"""Names for export formats that build on edgen's own tables and pairs.

    from edgen.plugin.formats import Repeats, rows_from

Second level (see `edgen.plugin`): these names may change in any minor release; CHANGELOG.md lists changes.

Rows
    AcceptedConversation: a conversation of a run. DataTable: one of several tables of a format.
    rows_from: a row for each item that a function reads. Repeats: detects repeated conversations.
        without_trailing_user: messages up to the assistant's last one.
    Tried: the trials of edgen's own formats in trainers. Rows: the type of `rows`. DEFAULT: the name of a
        format's only table.
    SPLITS, SplitName: train and test. Message: a dict of role and content.
Options
    OptionValues: the options of an export, by their structs. flag_of: an option as people type it. option:
        declares one with its help, flags and bounds. role_of: the role that an option names.
    MaskOptions, ActionOptions, ResponseOptions, TokenOptions, LayerOptions, PairSetOptions: options that
        several formats share, for their `Options` to extend. Agent: the type of --agent.
Tables of conversations
    COLUMNS, Columns, ScenarioColumns, make_table, read_row: columns of every table, and columns of the space.
    LayerFacts, columns_of, cells_of, texts_of, texts_in: columns of annotation layers.
Pairs
    Pair, Label, Side, ComparedPair, OracleSignal, RolloutSignal: pairs.jsonl. turns_left: the number of turns
        after a pair parts. Evidence, evidence_of, find_label_signal: the basis of a label. digest_of: the
        digest of messages.
Texts of writers
    RunFolder: the folder of a run. guide_of: the guide of its conversations.
    WrittenTexts, read_written: texts that a writer wrote for its turns.
Files
    RowFiles, Staging, JsonLines: base classes for a format's own files.
    Patterns, SplitFiles, WriteRow, ParquetFile, ParquetFiles, arrow_schema, has_arrow. write_new: a file next
        to the rows.
    disarm: a cell that no spreadsheet runs as a formula. install_command: the command for a missing extra.
Tokens
    ChatTokenizer. MOST, PAD: a row's tokens by default, and the padding token.
"""

from __future__ import annotations

from edgen.config.job import guide_of as guide_of
from edgen.core.extras import install_command as install_command
from edgen.core.files import write_new as write_new
from edgen.core.options import Agent as Agent
from edgen.core.options import option as option
from edgen.core.pair import Label as Label
from edgen.core.pair import OracleSignal as OracleSignal
from edgen.core.pair import Pair as Pair
from edgen.core.pair import RolloutSignal as RolloutSignal
from edgen.core.pair import Side as Side
from edgen.core.pair import turns_left as turns_left
from edgen.core.people.sheets import disarm as disarm
from edgen.export.chat import Message as Message
from edgen.export.chat import digest_of as digest_of
from edgen.export.chat import role_of as role_of
from edgen.export.chat import without_trailing_user as without_trailing_user
from edgen.export.conversation_rows import COLUMNS as COLUMNS
from edgen.export.conversation_rows import Columns as Columns
from edgen.export.conversation_rows import Repeats as Repeats
from edgen.export.conversation_rows import ScenarioColumns as ScenarioColumns
from edgen.export.conversation_rows import make_table as make_table
from edgen.export.conversation_rows import read_row as read_row
from edgen.export.evidence import Evidence as Evidence
from edgen.export.evidence import evidence_of as evidence_of
from edgen.export.evidence import find_label_signal as find_label_signal
from edgen.export.files import JsonLines as JsonLines
from edgen.export.files import ParquetFile as ParquetFile
from edgen.export.files import ParquetFiles as ParquetFiles
from edgen.export.files import Patterns as Patterns
from edgen.export.files import RowFiles as RowFiles
from edgen.export.files import SplitFiles as SplitFiles
from edgen.export.files import Staging as Staging
from edgen.export.files import WriteRow as WriteRow
from edgen.export.files import arrow_schema as arrow_schema
from edgen.export.files import has_arrow as has_arrow
from edgen.export.format import DEFAULT as DEFAULT
from edgen.export.format import SPLITS as SPLITS
from edgen.export.format import AcceptedConversation as AcceptedConversation
from edgen.export.format import DataTable as DataTable
from edgen.export.format import Rows as Rows
from edgen.export.format import SplitName as SplitName
from edgen.export.format import Tried as Tried
from edgen.export.format import rows_from as rows_from
from edgen.export.layer_columns import cells_of as cells_of
from edgen.export.layer_columns import columns_of as columns_of
from edgen.export.layer_columns import texts_in as texts_in
from edgen.export.layer_columns import texts_of as texts_of
from edgen.export.options import OptionValues as OptionValues
from edgen.export.options import flag_of as flag_of
from edgen.export.shared_options import ActionOptions as ActionOptions
from edgen.export.shared_options import LayerOptions as LayerOptions
from edgen.export.shared_options import MaskOptions as MaskOptions
from edgen.export.shared_options import PairSetOptions as PairSetOptions
from edgen.export.shared_options import ResponseOptions as ResponseOptions
from edgen.export.shared_options import TokenOptions as TokenOptions
from edgen.export.tokens import MOST as MOST
from edgen.export.tokens import PAD as PAD
from edgen.export.tokens import ChatTokenizer as ChatTokenizer
from edgen.store.layers import LayerFacts as LayerFacts
from edgen.store.run_folder import RunFolder as RunFolder
from edgen.store.run_parts import ComparedPair as ComparedPair
from edgen.store.written_texts import WrittenTexts as WrittenTexts
from edgen.store.written_texts import read_written as read_written
