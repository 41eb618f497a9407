"""Read one turn of self-play.

`reader.py` removes the wrappers of a turn, `labels.py` finds labels, `json_turn.py` reads JSON.
"""
