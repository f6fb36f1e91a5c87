"""The instructions that our operations may take, and what to say of those that they do take."""

import json
import os
import re

MOST_GROWTH = 0.05
STALE_BELOW = 0.10
PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "budget.json")


def made_with(build):
    """Compiler and flags of a build folder, which decide on every figure: "GNU 12 RelWithDebInfo"."""
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        cache = dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.M))
    version = f"{cache['CMAKE_CACHE_MAJOR_VERSION']}.{cache['CMAKE_CACHE_MINOR_VERSION']}.{cache['CMAKE_CACHE_PATCH_VERSION']}"
    with open(os.path.join(build, "CMakeFiles", version, "CMakeCXXCompiler.cmake"), encoding="utf-8") as file:
        compiler = dict(re.findall(r'^set\((CMAKE_CXX_COMPILER_\w+) "([^"]*)"\)', file.read(), re.M))
    instruments = cache.get("RINGBOLT_SANITIZE", "") + cache.get("RINGBOLT_COVERAGE", "").replace("OFF", "")
    words = [compiler["CMAKE_CXX_COMPILER_ID"], compiler["CMAKE_CXX_COMPILER_VERSION"].split(".")[0],
             cache.get("CMAKE_BUILD_TYPE", ""), instruments]
    return " ".join(word for word in words if word)


def load(path=PATH):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def save(figures, build_words, path=PATH):
    """`figures`: instructions by the name of the series; those that were not counted keep what they may take."""
    kept = load(path)["instructions"] if os.path.exists(path) else {}
    kept |= {name: round(value, 1) for name, value in figures.items()}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"made_with": build_words, "instructions": dict(sorted(kept.items()))}, file, indent=2)
        file.write("\n")


def verdicts(figures, limits):
    """(name, verdict, words) of each series that is no longer what the budget says; verdict: "over", "stale", "new"."""
    found = []
    for name, value in figures.items():
        if name not in limits:
            found.append((name, "new", f"{value:.1f} instructions, and no budget"))
            continue
        limit = limits[name]
        words = f"{value:.1f} instructions, {value / limit - 1:+.1%} against {limit:.1f}"
        if value > limit * (1 + MOST_GROWTH):
            found.append((name, "over", words))
        elif value < limit * (1 - STALE_BELOW):
            found.append((name, "stale", words))
    return found
