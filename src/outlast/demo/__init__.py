"""The demo: `make demo` builds a real book from the language reference that every Python carries."""
