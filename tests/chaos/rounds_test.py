"""The chaos plan: the same for a seed, complete, and honest about how long a survivor may wait."""

from __future__ import annotations

import unittest

from rounds import Round, plan


class Plan(unittest.TestCase):
    def test_same_seed_gives_same_rounds(self) -> None:
        self.assertEqual(list(plan(7, 50)), list(plan(7, 50)))
        self.assertNotEqual(list(plan(7, 50)), list(plan(8, 50)))

    def test_a_longer_run_begins_with_the_shorter_one(self) -> None:
        self.assertEqual(list(plan(7, 80))[:50], list(plan(7, 50)))

    def test_every_action_moment_and_type_occurs(self) -> None:
        rounds = list(plan(1, 500))
        self.assertEqual({entry.action for entry in rounds}, {"kill", "exit", "quit", "freeze", "freeze_long"})
        self.assertEqual({entry.moment for entry in rounds}, {"unconnected", "early", "flowing"})
        self.assertEqual({entry.type for entry in rounds}, {"rc", "uc", "ud"})
        self.assertEqual({entry.victim_is_hub for entry in rounds}, {True, False})

    def test_only_reliable_connections_are_frozen_for_long(self) -> None:
        self.assertEqual({entry.type for entry in plan(1, 500) if entry.action == "freeze_long"}, {"rc"})

    def test_a_short_freeze_is_shorter_than_the_patience_of_the_connection(self) -> None:
        for entry in plan(1, 500):
            if entry.action == "freeze":
                self.assertLess(entry.freeze_ms * 4, entry.give_up_ms)

    def test_a_long_freeze_needs_a_limit_for_receivers_that_are_not_ready(self) -> None:
        for entry in plan(1, 500):
            self.assertEqual(entry.rnr_retry == 7, entry.action != "freeze_long")

    def test_time_to_give_up_follows_the_retry_settings(self) -> None:
        def give_up_ms(timeout: int, retry: int, rnr_retry: int = 7) -> float:
            return Round(1, "rc", ("poll", "poll"), "kill", "early", 0, 0, False, timeout, retry, rnr_retry, 1).give_up_ms

        self.assertEqual(give_up_ms(10, 1), 500.0)
        self.assertEqual(give_up_ms(10, 1, 2), 500.0 + 2 * 327.68)
        self.assertAlmostEqual(give_up_ms(14, 7), 8 * 67.108864)
        self.assertAlmostEqual(give_up_ms(16, 7), 8 * 268.435456)


if __name__ == "__main__":
    unittest.main()
