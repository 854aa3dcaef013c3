"""The optimum over convex cones of rows, reached by cuts."""
