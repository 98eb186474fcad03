"""What can be asked of a column, one file per kind of value; `Expr` is all of them."""
