"""The parts of a text in any layout: quotation marks, the end marker, thinking, the text around the turns."""
