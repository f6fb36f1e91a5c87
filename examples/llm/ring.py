#!/usr/bin/env python3
"""The model of this folder on emulated clusters, one command each:

    ring.py train       data parallel on a ring of four, twice, on other cablings, and by one process: the same bits
    ring.py generate    tensor parallel on 2, 3 and 4 ranks beside torch's gloo: logits and tokens a second
    ring.py failures    a cable is cut while it generates, a rank is killed, and the text is the same in the end

Results, pictures and the model go to build/llm. Exit status 1: something was not as it should be, and the words say what."""

import argparse
import json
import pathlib
import re
import signal
import subprocess
import sys
import time
import os

import draw

HERE = pathlib.Path(__file__).resolve().parent
DEADLINE_S = 3600  # of one run
HEARD_S = 1.0      # within which the others say who died


def ringbolt(*words: str) -> str:
    done = subprocess.run(["ringbolt", *words], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise SystemExit(f"ringbolt {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Cluster:
    """An emulated cluster, while it is needed."""

    def __init__(self, cabling: str):
        self.cabling, self.name = cabling, f"llm{os.getpid()}"

    def __enter__(self) -> "Cluster":
        ringbolt("up", "--emulate", self.cabling, "--name", self.name)
        return self

    def __exit__(self, *_) -> None:
        subprocess.run(["ringbolt", "down", "--force", "--cluster", self.name], capture_output=True, check=False, timeout=60)

    def command(self, program: str, *words) -> list[str]:
        return ["ringbolt", "run", "--cluster", self.name, "--keep-going", "--no-tag", "--", sys.executable, "-B",
                str(HERE / program), *map(str, words)]

    def run(self, program: str, *words) -> None:
        done = subprocess.run(self.command(program, *words), capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{self.cabling}, {program}: exit status {done.returncode}\n{done.stdout}{done.stderr}")


def train(wanted) -> int:
    def outcome(name: str) -> dict:
        read = json.loads((wanted.out / "train.json").read_text())
        print(f"{name:24} loss {read['losses'][0]:.4f} to {read['losses'][-1]:.4f}, all parameters {read['digest']}, "
              f"{read['seconds'] / len(read['losses']):.2f} s a step", flush=True)
        return read

    words = ["--size", wanted.size, "--steps", wanted.steps, "--json", wanted.out / "train.json", "--save", wanted.out / "model.pt"]
    results = {}
    for name, cabling in (("ring of four", "ring:4"), ("the ring once more", "ring:4"), ("line of four", "line:4"),
                          ("mesh of four", "mesh:4")):
        with Cluster(cabling) as cluster:
            cluster.run("train.py", *words)
        results[name] = outcome(name)
    subprocess.run([sys.executable, "-B", str(HERE / "train.py"), *map(str, words), "--alone", "4"], check=True, timeout=DEADLINE_S,
                   stdout=subprocess.DEVNULL)
    results["one process"] = outcome("one process")
    curves = {name: one["losses"] for name, one in results.items()}
    (wanted.out / "loss.svg").write_text(draw.lines("Loss of a batch", "nats a byte", "step", curves))
    first = results["ring of four"]
    different = [name for name, one in results.items() if (one["digest"], one["losses"]) != (first["digest"], first["losses"])]
    print("not the same: " + ", ".join(different) if different else "the same bits each time, losses and parameters")
    return 1 if different else 0


def model_words(wanted) -> list:
    made = wanted.out / "model.pt"
    return ["--model", made] if made.exists() else ["--size", wanted.size]


def generate(wanted) -> int:
    rows, worst = {}, 0.0
    for ranks in (2, 3, 4):
        with Cluster(f"line:{ranks}" if ranks == 2 else f"ring:{ranks}") as cluster:
            for words in (["--check"], ["--compare", "gloo"]):
                cluster.run("generate.py", *model_words(wanted), *words, "--tokens", wanted.tokens, "--json",
                            wanted.out / "generate.json")
                read = json.loads((wanted.out / "generate.json").read_text())
                worst = max(worst, read["largest_difference"])
        rows[f"{ranks} ranks"] = read["tokens_per_s"]
        print(f"{ranks} ranks: logits within {worst:.1e} of one process; " +
              ", ".join(f"{name} {rate:.0f} tokens/s" for name, rate in read["tokens_per_s"].items()), flush=True)
    (wanted.out / "tokens.svg").write_text(draw.bars("Tokens a second, tensor parallel", "1/s", rows))
    return 0


class Generation:
    """One run of generate.py that writes to a file, and that something happens to."""

    def __init__(self, cluster: Cluster, wanted, file: pathlib.Path):
        self.file, self.begin = file, time.monotonic()
        self.child = subprocess.Popen(
            cluster.command("generate.py", *model_words(wanted), "--tokens", wanted.tokens, "--resume", file),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def wait_for(self, length: int) -> None:
        while not self.file.exists() or self.file.stat().st_size < length:
            if self.child.poll() is not None or time.monotonic() > self.begin + DEADLINE_S:
                raise SystemExit(f"it ended before it had written {length} bytes:\n{self.end()}")
            time.sleep(0.005)

    def end(self) -> str:
        return self.child.communicate(timeout=DEADLINE_S)[0]


def failures(wanted) -> int:
    texts = {name: wanted.out / f"text-{name}" for name in ("undisturbed", "cut", "killed")}
    for file in texts.values():
        file.unlink(missing_ok=True)
    third = wanted.tokens // 3
    with Cluster("ring:4") as cluster:
        undisturbed = Generation(cluster, wanted, texts["undisturbed"])
        words = undisturbed.end()
        expected = texts["undisturbed"].read_bytes() if undisturbed.child.returncode == 0 else b""
        if not expected:
            raise SystemExit(words)
    with Cluster("ring:4") as cluster:
        cut = Generation(cluster, wanted, texts["cut"])
        cut.wait_for(third)
        ringbolt("cut", "--cluster", cluster.name, "1-2")
        words = cut.end()
        if cut.child.returncode != 0 or texts["cut"].read_bytes() != expected:
            raise SystemExit(f"the cable 1-2 was cut, and then:\n{words}")
        print(f"cable 1-2 cut after {third} tokens: it went on, and wrote the same {len(expected)} bytes", flush=True)
    with Cluster("ring:4") as cluster:
        killed = Generation(cluster, wanted, texts["killed"])
        lines = [killed.child.stdout.readline() for _ in range(4)]
        process = next(int(found[1]) for found in (re.match(r"rank 2 of 4: process (\d+)", line) for line in lines) if found)
        killed.wait_for(third)
        at = time.time()
        os.kill(process, signal.SIGKILL)
        words = killed.end()
        heard = re.findall(r"rank (\d): after \d+ bytes, at ([\d.]+): (.*)", words)
        print(f"rank 2 killed after {third} tokens:")
        for rank, when, what in sorted(heard):
            print(f"  rank {rank} after {float(when) - at:.2f} s: {what}")
        if [rank for rank, *_ in sorted(heard)] != ["0", "1", "3"] or any(
                float(when) - at > HEARD_S or "rank 2" not in what for _, when, what in heard):
            raise SystemExit(f"not all others said within {HEARD_S} s that rank 2 died:\n{words}")
        begun = texts["killed"].stat().st_size
        again = Generation(cluster, wanted, texts["killed"])
        words = again.end()
        if again.child.returncode != 0 or texts["killed"].read_bytes() != expected:
            raise SystemExit(f"started again, it did not finish the text:\n{words}")
        print(f"started again: it went on at byte {begun}, and finished the same text")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["train", "generate", "failures"])
    parser.add_argument("--size", default="small", choices=["small", "tiny"])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=384)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/llm"))
    wanted = parser.parse_args()
    wanted.out.mkdir(parents=True, exist_ok=True)
    return {"train": train, "generate": generate, "failures": failures}[wanted.what](wanted)


if __name__ == "__main__":
    sys.exit(main())
