"""The simulator: the real engine and core on simulated time, processes, store, files and agents, with faults by seed."""
