"""What a well-typed query must satisfy, decided before it runs: types, unambiguity, witnesses."""
