"""Values merged into clusters, and moved between them."""
