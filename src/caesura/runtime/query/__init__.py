"""A plan at work in this process: the query, its result, pipelines of several views, plans on storage."""
