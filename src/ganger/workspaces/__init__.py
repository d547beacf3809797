"""Where agents work, and the single way in which their changes land."""
