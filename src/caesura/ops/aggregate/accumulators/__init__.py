"""What aggregates keep per slot, and how it runs over panes."""
