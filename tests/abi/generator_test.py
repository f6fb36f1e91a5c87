#!/usr/bin/env python3
"""The generator of src/abi refuses a table that would make a wrong library.

    generator_test.py FOLDER_OF_GENERATE_PY
"""

import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import generate  # noqa: E402  (its folder is an argument)

REAL = "lib.so a V_1.0 real - -\n"


class Table(unittest.TestCase):
    def refuses(self, text: str, part: str):
        with self.assertRaises(ValueError) as caught:
            generate.parse(text)
        self.assertIn(part, str(caught.exception))

    def test_names_the_line(self):
        self.refuses(REAL + "# comment\n\nlib.so b V_1.0 real -\n", "symbols.txt:4: 5 columns")

    def test_kinds_and_returns(self):
        self.refuses("lib.so a V_1.0 wild - -\n", "kind 'wild'")
        self.refuses("lib.so a V_1.0 refuse ENOSYS maybe\n", "returns 'maybe'")
        self.refuses("lib.so a V_1.0 real ENOSYS null\n", "no generated failure")
        self.refuses("lib.so a V_1.0 refuse - null\n", "errno is wanted")
        self.refuses("lib.so a V_1.0 refuse ENOSYS false\n", "errno is wanted")

    def test_twice(self):
        self.refuses(REAL + REAL, "second time")
        self.refuses(REAL + "lib.so a V_1.1 real - -\n", "two default versions")

    def test_one_name_in_two_libraries(self):
        self.assertEqual(len(generate.parse(REAL + REAL.replace("lib.so", "other.so"))), 2)

    def test_map_orders_nodes_by_number_and_private_last(self):
        symbols = generate.parse("l a V_PRIVATE_34 real - -\nl b V_1.10 real - -\nl c V_1.9 real - -\n")
        text = generate.version_map(symbols)
        self.assertLess(text.index("V_1.9 {"), text.index("V_1.10 {"))
        self.assertIn("} V_1.9;", text)
        self.assertIn("} V_1.10;", text)
        self.assertEqual(text.count("*;"), 1)

    def test_legacy_name_is_not_listed_in_the_map(self):
        symbols = generate.parse("l a V_1.0 legacy ENOSYS errno\nl a V_1.1 real - -\n")
        self.assertEqual(generate.version_map(symbols).count(" a;"), 1)
        self.assertIn('.symver ringbolt_legacy_V_1_0_a, a@V_1.0"', generate.source(symbols))

    def test_further_nodes_have_the_name_too_and_are_not_its_default(self):
        symbols = generate.parse("l a V_PRIVATE_34,57 private ENOSYS errno\nl b V_PRIVATE_34,57 real - -\n")
        text = generate.version_map(symbols)
        self.assertEqual((text.count(" a;"), text.count(" b;")), (1, 1))
        self.assertIn("V_PRIVATE_57 {\n};\nV_PRIVATE_34 {", text)  # the hiding pattern would hide them in their node
        self.assertIn('.symver ringbolt_again_V_PRIVATE_57_a, a@V_PRIVATE_57"', generate.source(symbols))
        self.assertNotIn("b@", generate.source(symbols))


if __name__ == "__main__":
    unittest.main()
