"""One of each of the five kinds of things that a package can add to edgen."""
