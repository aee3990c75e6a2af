"""A language model as the last tier of the verifier: what it is asked, how it is asked, and how it is trained."""
