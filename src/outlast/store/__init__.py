"""The store: statements, the programs made of them, and the two drivers that run programs on PostgreSQL and SQLite."""
