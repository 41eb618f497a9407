"""What edgen asks people: requests that they answer, and tables that they fill in."""
