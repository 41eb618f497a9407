"""State machines that offer a role its utterances: the model, its files, checks, drawings, learning."""
