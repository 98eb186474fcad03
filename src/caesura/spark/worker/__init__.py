"""What runs in Spark's Python workers: stage 0, fragments, which files are read, and their neighbours."""
