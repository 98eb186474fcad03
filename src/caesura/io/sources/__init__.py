"""Where rows come from: files, memory, Python objects; and the step that reads them."""
