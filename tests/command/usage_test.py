"""Wrong words: what is wrong, with its name and numbers, and what to write instead; help, and completion in a shell."""

import json
import pathlib
import subprocess

import command
from command import CommandCase

# What no number may be; empty is none either.
NO_NUMBERS = ["x", "-1", "+1", " 1", "1 ", "1e400", "nan", "-nan", "inf", "0x10", "1,5", "99999999999999999999999", "-99999999999999999999999"]
NO_WHOLE_NUMBERS = ["1.5", "1e3", "1k"]


class Numbers(CommandCase):
    def options(self):
        for one in json.loads(self.call("help", "--json").stdout)["commands"]:
            for option in one["options"]:
                yield one["command"].split(), option

    def words(self, name, option, value):
        """A negative number in the place of an argument would be an option."""
        if option["names"]:
            return [*name, f"{option['names'][-1]}={value}" if option["names"][-1].startswith("--") else option["names"][-1] + value]
        before = ["x"] if name == ["host"] else []  # the action
        return [*name, *before, value]

    def test_every_number_is_checked_where_it_is_read(self):
        n_numbers = 0
        for name, option in self.options():
            if option["kind"] not in ("whole", "real"):
                continue
            n_numbers += 1
            below = [str(int(option["least"]) - 1)] if option["kind"] == "whole" else []
            above = [str(int(option["most"]) + 1)] if option["kind"] == "whole" else [f"{option['most']}0", "1e400"]
            wrong = ["", "-1", "nan", *below, *above]
            for value in wrong:
                if not option["names"] and (value == "" or value[0] in "-"):
                    continue
                with self.subTest(command=name, option=option["names"], value=value):
                    done = self.refused(*self.words(name, option, value), says=["a value" if value == "" else "give a"])
                    if value != "" and not option["is_hidden"]:
                        self.assertIn(option["most"] if option["kind"] == "whole" else "number from", done.stderr)
        self.assertGreater(n_numbers, 50)

    def test_what_is_no_number(self):
        for value in NO_NUMBERS:
            self.refused("matrix", f"--timeout={value}", says=["give a number from 0.1 to 3600"])
        for value in [*NO_NUMBERS, *NO_WHOLE_NUMBERS]:
            self.refused("matrix", f"--rounds={value}", says=["give a whole number from 1 to 10000000"])

    def test_no_option_is_read_as_a_number_without_limits(self):
        """CLI11's own conversion speaks of what it could not read: no option of ours leaves it to that."""
        for name, option in self.options():
            if option["kind"] == "text" and option["names"] and not option["is_hidden"]:
                with self.subTest(command=name, option=option["names"]):
                    done = self.call(*self.words(name, option, "no;number"), "--no-such-option", expect=2)
                    self.assertNotIn("can't be read", done.stderr)

    def test_words_are_told(self):
        for name, option in self.options():
            if option["kind"] == "word" and not option["is_hidden"]:
                with self.subTest(command=name, option=option["names"]):
                    self.refused(*self.words(name, option, "nonsense"), says=["nonsense", *option["words"]])

    def test_zeros_in_front_make_no_other_number(self):
        self.assertIn("10 nodes", self.call("plan", "-n", "010", "-p", 3).stdout)

    def test_ports_of_listeners(self):
        for port in ("99999", "65536", "-1", "x", "", "1 ", "0x50"):
            self.refused("metrics", "--listen", f"127.0.0.1:{port}", says=["--listen"])
        self.refused("metrics", "--listen", "127.0.0.1:99999", says=["1 to 65535", "\"99999\""])


class Words(CommandCase):
    def test_errors_say_what_to_write(self):
        for words, says in {
                (): "a command is missing",
                ("rn", "--", "true"): "did you mean run?",
                ("stat",): "did you mean status?",
                ("fly",): "\"fly\" is no command; ",
                ("fault",): "say which: add, list, clear",
                ("fault", "ad", "loss"): "did you mean add?",
                ("run", "true"): "goes after --: ringbolt run -- true",
                ("run", "--timeout", 5, "./prog", "-x"): "goes after --: ringbolt run --timeout 5 -- ./prog -x",
                ("exec", 0, "ls", "-l"): "goes after --: ringbolt exec 0 -- ls -l",
                ("exec",): "NODE is missing",
                ("env",): "for example: ringbolt env local",
                ("up", "--emulat", "ring:3"): "did you mean --emulate?",
                ("plan", "--prots", 3): "did you mean --ports?",
                ("perf", "send", "--iters"): "--iters takes a value: N (1 to ",
                ("perf", "send", "-n", 3, "-n", 4): "--iters is given 2 times",
                ("status", "x"): "\"x\" is one word too many",
                ("run", "--tag", "--no-tag", "--", "true"): "--tag and --no-tag exclude each other",
                ("check", "--thorough"): "--thorough goes with --matrix",
                ("up", "--over", "netwrok"): "did you mean network?",
                ("status", "--json=maybe"): "--json: \"maybe\" can't be read",
                ("help", "rn"): "did you mean run?"}.items():
            with self.subTest(words):
                done = self.refused(*words, says=[says])
                self.assertRegex(done.stderr, r"^ringbolt[a-z ]*: [^\n]*\n$")

    def test_help_of_a_command_is_its_help(self):
        listed = json.loads(self.call("help", "--json").stdout)["commands"]
        self.assertEqual(self.call("help").stdout, self.call("--help").stdout)
        for one in listed:
            if not one["is_hidden"]:
                said = self.call("help", *one["command"].split()).stdout
                self.assertEqual(said, self.call(*one["command"].split(), "--help").stdout)
                self.assertIn(f"ringbolt {one['command']}", said)
                self.assertIn(one["description"].split()[0], self.call("help", *one["command"].split()[:-1]).stdout)

    def test_help_is_as_wide_as_the_terminal(self):
        for columns in (50, 80, 132):
            for words in ([], ["run"], ["perf"], ["fault"], ["verify"]):
                said = self.call("help", *words, env={"COLUMNS": str(columns)}).stdout.splitlines()
                # Examples stay on their lines.
                wide = [line for line in said if len(line) > columns and "ringbolt " not in line]
                self.assertEqual(wide, [])
        said = self.call("help", "matrix", env={"COLUMNS": "132"}).stdout
        self.assertTrue(any(len(line) > 100 for line in said.splitlines()))

    def test_help_groups_commands(self):
        said = self.call("help").stdout
        for group in ("Plan and make clusters:", "Run programs on nodes:", "Measure and prove:", "Break and mend on purpose:"):
            self.assertIn(f"\n{group}\n", said)


class Completion(CommandCase):
    def completed(self, *typed):
        """As bash does it: what Tab offers after these words, the last of which is begun."""
        script = pathlib.Path(command.EXTRA[0]) / "completion/ringbolt.bash"
        text = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                '"$(complete -p ringbolt | sed "s/.*-F \\([^ ]*\\).*/\\1/")"; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "--norc", "-ec", text, "bash", str(script), command.RINGBOLT, *typed],
                              env=self.environment, capture_output=True, text=True, check=True, timeout=command.PATIENCE_S)
        self.assertEqual(done.stderr, "")
        return done.stdout.split("\n")[:-1]

    def test_commands_and_options(self):
        self.assertEqual(self.completed("st"), ["status"])
        self.assertIn("verify", self.completed(""))
        self.assertNotIn("probe", self.completed(""))
        self.assertEqual(self.completed("fault", ""), ["add", "list", "clear"])
        self.assertEqual(self.completed("help", "fault", "c"), ["clear"])
        self.assertEqual(self.completed("up", "--no"), ["--no-management"])
        self.assertEqual(self.completed("up", "--over", ""), ["auto", "streams", "network"])
        self.assertEqual(self.completed("up", "--over", "=", "s"), ["streams"])
        self.assertEqual(self.completed("decode", "x"), [""])
        self.assertIn("true", self.completed("exec", "0", "--", "tru"))

    def test_names_of_what_is_up(self):
        self.assertEqual(self.completed("cut", ""), [""])
        with self.cluster("line:3"):
            self.assertEqual(self.completed("exec", ""), ["n0", "n1", "n2"])
            self.assertEqual(self.completed("status", "--cluster", ""), ["line3"])
            self.assertEqual(self.completed("cut", "n1"), ["n1-n2"])
            self.assertEqual(self.completed("run", "--nodes", "n0,"), ["n0,n0", "n0,n1", "n0,n2"])
            self.assertEqual(self.completed("perf", "send", "--nodes", "n0,n1"), ["n0,n1"])


if __name__ == "__main__":
    command.main()
