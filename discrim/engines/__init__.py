"""Where tables beyond one machine's memory live: each engine gathers statistics of parts, and knows no method."""
