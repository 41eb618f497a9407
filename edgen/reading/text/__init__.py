"""Rules for texts in any layout.

- `wrappers.py` takes away what is around the lines: reasoning blocks (`thinking.py`), and the markup of XML,
  HTML, BBCode and LaTeX (`markup.py`).
- `surroundings.py`: headings, fences, ends of turns, the probability. `marker.py`: the end marker.
- `quotes.py`: quotation marks around a turn. `escapes.py`: the escapes between them.
- `characters.py`: cheap checks for marks and words.
"""
