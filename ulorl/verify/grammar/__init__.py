"""From the text of an answer to a parsed value: every token is accounted for, or nothing is parsed."""
