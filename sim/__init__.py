"""The simulator: the real engine and core on simulated time, processes, store, files and agents; faults by seed."""
