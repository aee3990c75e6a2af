"""``python -m ulorl`` is ``ulorl``."""

from ulorl.cli import main

main()
