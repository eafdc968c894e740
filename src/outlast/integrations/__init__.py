"""Outlast inside other people's frameworks. Each module needs its own extra, and is imported by who uses that framework."""
