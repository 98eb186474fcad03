"""Where output goes, as rows."""
