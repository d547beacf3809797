"""What happens in a run, told to programs and people outside: one file per way, none of which can hold up the lead."""
