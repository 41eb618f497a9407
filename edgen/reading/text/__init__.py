"""Rules for texts in any layout.

- `thinking.py`, `markup.py`: remove reasoning blocks; rewrite XML, HTML, BBCode and LaTeX as lines.
- `surroundings.py`: headings, fences, ends of turns, the probability. `marker.py`: the end marker.
- `quotes.py`: quotation marks around a turn. `characters.py`: cheap checks for marks and words.
"""
