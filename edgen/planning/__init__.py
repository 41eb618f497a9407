"""From a job file to a plan: templates, space and scenarios read and checked, nothing asked."""
