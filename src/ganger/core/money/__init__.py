"""Money and tokens: prices, budgets, what is set aside and settled."""
