"""Read conversations in lines with labels: `Teacher: …`, `**Student** (10:05): …`, `said the teacher`.

- `role_lines.py` cuts a text at its labels; `labels.py` has the expressions for labels.
- `line.py` selects the lines of one conversation.
- `shared_marks.py` and `conversation.py` find each turn's text and the text around the turns;
  `foot.py` finds the lines under the last one.
- `frames.py` cuts a text whose labels no rule knows, each with its frame (`frame_ends.py`).
- `legend.py` and `speakers.py` find the speakers' words.
"""
