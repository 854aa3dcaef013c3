"""What others make of a wide release: the published folder, true columns of people, and whoever links the two."""
