"""The table for people. The JSON has everything; the table has one row per case, class and peer."""

import json


def _value(figures, unit):
    if figures is None:
        return "-"
    value = figures["median"]
    if unit == "messages/s":
        return f"{value / 1e6:.2f} M/s"
    if value < 1e3:
        return f"{value:.0f} ns"
    return f"{value / 1e3:.2f} us" if value < 1e6 else f"{value / 1e6:.2f} ms"


def _verdict(peer):
    if peer["ratio"] is None or (peer["goal"] is None and peer["floor"] is None):
        return ""
    if peer["goal"] is not None and peer["ratio"] >= peer["goal"]:
        return "goal met"
    if peer["floor"] is not None and peer["ratio"] < peer["floor"]:
        return "FLOOR MISSED"
    return "goal missed" if peer["goal"] is not None else "floor met"


def _own_verdict(case, ours):
    if case["least_rate"] is not None:
        return f"goal {case['least_rate'] / 1e6:.0f} M/s " + ("met" if ours["median"] >= case["least_rate"] else "missed")
    if case["worst_p99_ms"] is not None and "p99_ns" in ours:
        p99_ms = ours["p99_ns"] / 1e6
        verdict = "met" if p99_ms <= case["worst_p99_ms"] else "FLOOR MISSED"
        return f"p99 {p99_ms:.2f} ms, limit {case['worst_p99_ms']} ms {verdict}"
    return ""


def rows(cases):
    """Yields (id, title, class, peer, theirs, ours, ratio, wanted, verdict, blocks)."""
    for case in cases:
        for kind, entry in case["classes"].items():
            ours = _value(entry["ours"], case["unit"])
            own = "" if entry["ours"] is None else _own_verdict(case, entry["ours"])
            if entry["ours"] is not None and (own or not entry["peers"]):
                yield (case["id"], case["title"], kind, "(ours)", "", ours, "", "", own,
                       str(entry["ours"]["blocks"]))
            for name, peer in entry["peers"].items():
                wanted = "/".join("-" if x is None else f"{x:.2f}" for x in (peer["goal"], peer["floor"]))
                yield (case["id"], case["title"], kind, name, _value(peer, case["unit"]), ours,
                       "-" if peer["ratio"] is None else f"{peer['ratio']:.2f}", "" if wanted == "-/-" else wanted,
                       _verdict(peer), f"{entry['ours']['blocks'] if entry['ours'] else 0}/{peer['blocks']}")


HEAD = ("id", "case", "class", "peer", "theirs", "ours", "ratio", "goal/floor", "verdict", "blocks")


def table(cases):
    lines = [HEAD] + list(rows(cases))
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def markdown(cases):
    """The same table for a document."""
    lines = [HEAD, ("---",) * len(HEAD)] + list(rows(cases))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def show(options, output):
    """Prints the machine, the peers, the table and what is missing, or the JSON instead; writes the JSON where it is wanted."""
    if options.json == "-":
        print(json.dumps(output, indent=1))
        return
    for name, value in list(output["machine"].items()) + list(output["peers"].items()):
        print(f"{name}: {value}")
    print(markdown(output["cases"]) if options.markdown else table(output["cases"]))
    for case in output["cases"]:
        for peer, why in case["missing"].items():
            print(f"{case['id']}: no figures of {peer}: {why}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(output, file, indent=1)


def status_of(options, cases):
    """The exit status: 1 where our side has no figures, or, with --enforce, misses what is demanded."""
    ours_is_missing = any(case["ours"] in case["missing"] for case in cases)
    return 1 if ours_is_missing or (options.enforce and floors_missed(cases)) else 0


def floors_missed(cases):
    """The rows that fall short of what is demanded."""
    return [row for row in rows(cases) if "FLOOR MISSED" in row[8]]
