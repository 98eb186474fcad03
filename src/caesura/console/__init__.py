"""What people see while a query runs: a panel in a terminal, pages in a browser."""
