"""``python -m auditor`` is the command line."""

from auditor.cli.main import main

main()
