"""What one machine is: processes as /proc shows them, files and folders, standard streams. No package is needed."""
