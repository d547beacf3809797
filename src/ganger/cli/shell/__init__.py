"""What all commands share: click, errors, options, the table of commands."""
