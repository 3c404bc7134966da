"""Everything that passes the boundary between driver and worker.

Messages are JSON lines in both directions, validated on both sides. The driver writes commands to
the worker's standard input. The worker answers with events on the descriptor that was its standard
output; its own prints go to standard error, so generated code cannot write messages by printing. A
file (a policy, a saved state, episodes) is a `FileHeader` followed by its bytes, and comes before
the message that names it. The two sides share no folder. Filters of system calls hold what runs
behind the boundary.
"""
