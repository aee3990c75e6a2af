"""From a response to the final answer it states."""
