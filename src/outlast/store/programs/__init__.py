"""The store's programs: one logic for both dialects and both colours. Each returns an `Operation`."""
