"""CI results of forges: untrusted answers, translated into six words."""
