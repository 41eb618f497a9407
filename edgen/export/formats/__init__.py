"""The shipped formats, one file each. pyproject registers them under `edgen.formats`, as a plugin would."""
