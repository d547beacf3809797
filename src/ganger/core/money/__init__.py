"""Money and tokens: prices, budgets, what is reserved and settled."""
