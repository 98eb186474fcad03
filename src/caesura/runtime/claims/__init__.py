"""Which states of the output are those of a prefix of the input: by tokens, labels, draining, punctuation."""
