"""Where agents work, and the one door through which their changes land."""
