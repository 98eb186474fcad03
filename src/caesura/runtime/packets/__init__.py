"""Items as bytes: packets between stages, their whole numbers in few bytes, and what waits between steps."""
