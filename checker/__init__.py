"""The judge of runs: what must hold of any run, by its events and by what the outside showed; a store in memory."""
