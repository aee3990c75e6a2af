"""Is the final answer of a response equivalent to the reference?"""

from ulorl.verify.classes import equivalence_classes
from ulorl.verify.verdict import Item, Verdict
from ulorl.verify.verifier import Verifier

__all__ = ["Item", "Verdict", "Verifier", "equivalence_classes"]
