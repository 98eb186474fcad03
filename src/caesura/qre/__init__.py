"""StreamQRE."""
