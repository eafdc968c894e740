"""The host application's own sessions and connections: how a program of ours runs on one, and how its transaction begins and ends."""
