"""Pin a protocol, take it on a later night, say what drifted."""
