"""Tables of others as streams: the changes that a database or a table format tells of its rows."""
