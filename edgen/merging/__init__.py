"""One run of several: pieces of a job and runs of one job merged, and runs made anew from others."""
