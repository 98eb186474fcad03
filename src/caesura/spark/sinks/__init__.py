"""Where an epoch's output goes on Spark."""
