"""What stands in a text whatever its layout: quotation marks, the end marker, thinking, what surrounds the turns."""
