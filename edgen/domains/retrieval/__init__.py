"""Tasks cut from conversations: candidates to choose from, wrong ones drawn by rules, and answers of others
scored."""
