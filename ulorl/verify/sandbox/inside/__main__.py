"""Entry of the processes on this side: ``python -s -S -P -B inside/__main__.py keep MODE IDENTITY [COMMAND...]``, or
``... box MESSAGE`` in a box that another command has built."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if sys.argv[1] == "keep":
        from inside import keeper

        keeper.main(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    else:
        from inside import box

        box.inside_another(sys.argv[2])
