"""core.model.ledger"""
