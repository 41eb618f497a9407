"""One of each of the five kinds of plugins that a package can add to edgen."""
