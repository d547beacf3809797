"""Folders and files: read, copied, compared and removed by descriptors alone."""
