"""Items as bytes: packets between stages, with their whole numbers in few bytes."""
