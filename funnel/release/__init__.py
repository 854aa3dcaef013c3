"""From drawn codes to a published folder: the manifest, what the solver found, signing, atomic publishing, recovery."""
