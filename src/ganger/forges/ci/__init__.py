"""What forges say of CI, read without trust and put into six words."""
