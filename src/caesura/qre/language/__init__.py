"""What queries are written in: types, items, expressions, rates, folds, sketches, and how they print."""
