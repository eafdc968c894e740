"""The worker: claims tasks, runs handlers, keeps leases, commits what came of them, and recovers what others lost."""
