"""verl's rows for multi-turn fine-tuning: Parquet with a column `messages`.

As `verl/utils/dataset/multiturn_sft_dataset.py` reads them: the loss falls on every message whose role is assistant.
"""

from __future__ import annotations

from edgen.exporters import trl_sft
from edgen.exporters.base import Format

FORMAT = Format(
    name="verl",
    of="conversations",
    summary="Whole conversations in Parquet, as verl's MultiTurnSFTDataset takes them.",
    rows=trl_sft.rows,
    configs=trl_sft.FORMAT.configs,
    use="""\
torchrun -m verl.trainer.fsdp_sft_trainer data.multiturn.enable=true data.multiturn.messages_key=messages \\
  data.train_files=THIS_FOLDER/train.parquet data.val_files=THIS_FOLDER/test.parquet ...""",
    notes=("verl takes the loss on the assistant's messages by their role; it does not read `train`.",),
    files="parquet",
    tags=("verl", "sft", "conversational"),
)
