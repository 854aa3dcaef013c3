"""Engines: where tables live and work is done. Nothing above an engine knows which one runs."""
