"""SQLite: dialect, one writer thread, readers, migrations."""
