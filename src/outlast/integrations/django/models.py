"""No models: the tables are Outlast's own. Django tells only apps with this module that a database was migrated."""
