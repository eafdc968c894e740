"""What moves committed rows from where they were written to where they are worked on."""
