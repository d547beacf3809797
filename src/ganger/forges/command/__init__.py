"""CI without a forge: commands of the operator."""
