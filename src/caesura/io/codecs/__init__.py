"""What the bytes of a record say: values of a log, as columns and back."""
