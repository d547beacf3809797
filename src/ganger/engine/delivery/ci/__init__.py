"""CI of pushed commits: polled, waited for, rerun, explained."""
