#!/usr/bin/env python3
"""Prints the documents that show commands, for CMake: list_pages.py ROOT"""

import pathlib
import sys

import page as documents

print(";".join(documents.has_commands(pathlib.Path(sys.argv[1]))), end="")
