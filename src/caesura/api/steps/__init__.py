"""The families of what a stream can do, one file each; `Stream` is all of them."""
