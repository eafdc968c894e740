"""The web page: rendered here, usable without JavaScript; forms carry version, question and token."""
