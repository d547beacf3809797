"""CI without a forge: the operator's own commands."""
