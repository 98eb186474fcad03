"""What goes backwards between epochs, as files."""
