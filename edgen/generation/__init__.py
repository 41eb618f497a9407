"""From a job to its run: arms, one after another or some at once, and partitions in processes of their own."""
