"""Submit, follow and control jobs. Async, and blocking with equal signatures."""
