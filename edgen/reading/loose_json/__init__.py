"""Read conversations in JSON: `parser.py` parses it, `turns.py` and `conversation.py` find the turns."""
