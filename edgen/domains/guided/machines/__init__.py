"""State machines that offer what a role may say: what one is, its files, checking, drawing, learning."""
