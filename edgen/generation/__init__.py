"""From a job to its run: arms, and partitions in processes of their own."""
