"""Models turn scores into parameters; they know an objective, not what it is made of."""
