"""Objects that other packages add to edgen: their errors, and the modules they import."""
