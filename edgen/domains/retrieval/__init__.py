"""Response selection: candidates cut from conversations, wrong answers drawn by rules, and scores of
submissions."""
