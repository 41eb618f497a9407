"""Planning: from a job file to a plan with checked templates, space and scenarios, without any call."""
