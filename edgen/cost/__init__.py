"""Cost estimates of a job before it is started: calls, tokens, money and time."""
