"""The import of a real CSV file of airports into tables of the application's own, each row once, whatever dies meanwhile."""
