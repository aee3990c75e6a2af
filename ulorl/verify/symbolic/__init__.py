"""The tier that asks a computer algebra system, in worker processes that can be killed."""
