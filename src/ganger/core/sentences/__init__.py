"""Events as sentences, and which of them are sent outside."""
