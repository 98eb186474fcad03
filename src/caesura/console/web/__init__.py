"""A running query on pages in a browser: rendered here, kept up to date by one stream of events a page."""
