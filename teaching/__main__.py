import sys

from teaching.cli import main

sys.exit(main())
