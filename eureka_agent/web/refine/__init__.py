"""Refinement in the page: sessions that the server works on, their forms and their parts."""
