"""Objects that other packages add to edgen: their checks, their errors, and what they import."""
