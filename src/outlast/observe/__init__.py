"""What happens, as frozen events, and who listens."""
