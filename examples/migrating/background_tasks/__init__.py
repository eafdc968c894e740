"""A welcome, sent by BackgroundTasks and by Outlast."""
