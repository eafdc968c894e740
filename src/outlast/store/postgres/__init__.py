"""PostgreSQL: dialect, drivers, migrations, notifications."""
