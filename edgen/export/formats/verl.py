"""Rows for verl's multi-turn fine-tuning: Parquet with a column `messages`.

Format: `verl/utils/dataset/multiturn_sft_dataset.py`: the loss covers every assistant message.
"""

from __future__ import annotations

from edgen.export.formats import trl_sft
from edgen.export.formats.shared.trials import VERL
from edgen.plugin import Format, FormatCard, FormatLayout
from edgen.plugin.formats import MaskOptions, ParquetFiles

FORMAT = Format(
    name="verl",
    summary="Whole conversations in Parquet, as verl's MultiTurnSFTDataset takes them.",
    rows=trl_sft.FORMAT.rows,
    tables=trl_sft.FORMAT.tables,
    use="""\
torchrun --nproc_per_node=GPUS -m verl.trainer.sft_trainer data.messages_key=messages \\
  data.train_files=THIS_FOLDER/train.parquet data.val_files=THIS_FOLDER/test.parquet model.path=MODEL ...""",
    card=FormatCard(
        notes=(
            "verl takes the loss on the assistant's messages by their role; it does not read `train`.",
            (
                "The command is that of verl since 0.7.1 (0.9.1 is the newest that was checked). Releases up "
                "to 0.7.0 have verl.trainer.fsdp_sft_trainer instead, with data.multiturn.enable=true "
                "data.multiturn.messages_key=messages model.partial_pretrain=MODEL."
            ),
        ),
        tried=(
            VERL(
                "its sft_trainer composed the command's configuration; MultiTurnSFTDataset put the loss on the "
                "assistant's turns alone."
            ),
        ),
        tags=("verl", "sft", "conversational"),
    ),
    Options=MaskOptions,
    needs=("pyarrow",),
    layout=FormatLayout(files=ParquetFiles, scenario=True, by_range=True),
)
