"""What one machine is: processes as /proc shows them, temporary files, standard streams. Standard library only."""
