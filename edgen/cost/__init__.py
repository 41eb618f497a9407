"""What a job will cost: calls, tokens, money and time, before anything is asked."""
