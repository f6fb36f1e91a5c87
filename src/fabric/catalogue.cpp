#include "fabric/catalogue.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "fabric/builders.h"
#include "fabric/catalogue_table.h"

namespace ringbolt::fabric {
namespace {

using base::Parsed;
using base::refuse;

// A bound on what a rule of a stranger makes this build; numbers up to it fit in all products below.
constexpr uint32_t kMostNodes = 1000;

// Views into `text`; empty parts are left out, so that separators may be doubled.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) {
      parts.push_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// A whole number up to kMostNodes, with '+' or '-' before it if `is_signed`; nothing for any other text.
std::optional<int32_t> number(std::string_view text, bool is_signed = false) {
  // from_chars() of an unsigned number takes no sign of its own: "+-5" is refused.
  const bool is_negative = is_signed && text.starts_with('-');
  if (is_signed) {
    if (!is_negative && !text.starts_with('+')) {
      return std::nullopt;
    }
    text.remove_prefix(1);
  }
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value > kMostNodes) {
    return std::nullopt;
  }
  return is_negative ? -static_cast<int32_t>(value) : static_cast<int32_t>(value);
}

Parsed<Graph> parse_circulant(uint32_t n_nodes, std::string_view word) {
  if (!word.ends_with(')')) {
    return refuse(0, fmt::format("\"{}\" lacks its )", word));
  }
  std::vector<uint32_t> offsets;
  // No offsets at all are a graph without cables, which is no error here.
  for (const std::string_view part : split(word.substr(2, word.size() - 3), ',')) {
    const std::optional<int32_t> offset = number(part);
    if (!offset || *offset < 1 || 2 * static_cast<uint32_t>(*offset) > n_nodes ||
        std::ranges::count(offsets, static_cast<uint32_t>(*offset)) != 0) {
      return refuse(0, fmt::format("\"{}\" is no new offset from 1 to {}", part, n_nodes / 2));
    }
    offsets.push_back(static_cast<uint32_t>(*offset));
  }
  return circulant(n_nodes, offsets);
}

/// "P7 1:+6 2:+6 ...": takes all words.
Parsed<Graph> parse_periodic(uint32_t n_nodes, const std::vector<std::string_view>& words) {
  const std::optional<int32_t> period = number(words.front().substr(1));
  if (!period || *period < 1 || n_nodes % static_cast<uint32_t>(*period) != 0 || n_nodes < 2) {
    return refuse(0, fmt::format("\"{}\" is no period that divides {} nodes", words.front(), n_nodes));
  }
  std::vector<Chords> chords;
  for (size_t index = 1; index < words.size(); ++index) {
    const size_t colon = words[index].find(':');
    const std::optional<int32_t> residue = number(words[index].substr(0, colon));
    const std::optional<int32_t> offset =
        number(colon == std::string_view::npos ? "" : words[index].substr(colon + 1), true);
    if (!residue || *residue >= *period || !offset || static_cast<uint32_t>(std::abs(*offset)) % n_nodes == 0) {
      return refuse(0, fmt::format("\"{}\" is no chord as in 0:+5", words[index]));
    }
    chords.push_back({static_cast<uint32_t>(*residue), *offset});
  }
  return periodic_chords(n_nodes, static_cast<uint32_t>(*period), chords);
}

/// Adds or takes away the cables of `words`.
Parsed<Graph> with_changes(Graph graph, const std::vector<std::string_view>& words) {
  bool is_adding = true;
  for (const std::string_view word : words) {
    if (word == "minus" || word == "plus") {
      is_adding = word == "plus";
      continue;
    }
    const size_t dash = word.find('-');
    const std::optional<int32_t> a = number(word.substr(0, dash));
    const std::optional<int32_t> b = number(dash == std::string_view::npos ? "" : word.substr(dash + 1));
    if (!a || !b || a == b || static_cast<uint32_t>(std::max(*a, *b)) >= graph.n_nodes) {
      return refuse(0, fmt::format("\"{}\" is no cable between two of {} nodes", word, graph.n_nodes));
    }
    const auto low = static_cast<uint32_t>(std::min(*a, *b));
    const auto high = static_cast<uint32_t>(std::max(*a, *b));
    if (is_joined(graph, low, high) == is_adding) {
      return refuse(0, fmt::format("cable {} is {}", word, is_adding ? "there already" : "not there"));
    }
    if (is_adding) {
      join(graph, low, high);
    } else {
      // All rails of the two, of which a rule makes one.
      std::erase_if(graph.cables, [&](const Cable& cable) { return cable.a == low && cable.b == high; });
    }
  }
  sort_cables(graph);
  return graph;
}

/// "5..9" or "10".
bool covers(std::string_view range, uint32_t n_nodes) {
  const size_t dots = range.find("..");
  const std::optional<int32_t> low = number(range.substr(0, dots));
  const std::optional<int32_t> high = dots == std::string_view::npos ? low : number(range.substr(dots + 2));
  // The table is ours, and tested line by line.
  RINGBOLT_ASSERT(low && high);
  return static_cast<uint32_t>(*low) <= n_nodes && n_nodes <= static_cast<uint32_t>(*high);
}

}  // namespace

Parsed<Graph> parse_rule(uint32_t n_nodes, std::string_view rule) {
  std::vector<std::string_view> words = split(rule, ' ');
  if (words.empty() || n_nodes < 2 || n_nodes > kMostNodes) {
    return refuse(0, fmt::format("a rule has a word, and from 2 to {} nodes", kMostNodes));
  }
  const std::string_view first = words.front();
  if (first.starts_with("P") && first != "PETERSEN") {
    return parse_periodic(n_nodes, words);
  }
  Parsed<Graph> base = refuse(0, fmt::format("\"{}\" is no rule: C(S), Pp or PETERSEN", first));
  if (first.starts_with("C(")) {
    base = parse_circulant(n_nodes, first);
  } else if (first == "PETERSEN" && n_nodes >= 10) {
    base = petersen();
    base->n_nodes = n_nodes;  // further nodes are joined by what follows
  }
  words.erase(words.begin());
  return base ? with_changes(std::move(*base), words) : base;
}

std::optional<KnownGraph> catalogued(uint32_t n_nodes, uint32_t n_ports) {
  for (const std::string_view line : split(kCatalogueTable, '\n')) {
    const size_t first = line.find(' ');
    const size_t second = line.find(' ', first + 1);
    // As in covers(): the table is a constant of this program.
    RINGBOLT_ASSERT(second != std::string_view::npos);
    if (number(line.substr(0, first)) == static_cast<int32_t>(n_ports) &&
        covers(line.substr(first + 1, second - first - 1), n_nodes)) {
      const std::string_view rule = line.substr(second + 1);
      Parsed<Graph> graph = parse_rule(n_nodes, rule);
      RINGBOLT_ASSERT(graph.has_value());
      return KnownGraph{std::move(*graph), std::string(rule)};
    }
  }
  return std::nullopt;
}

}  // namespace ringbolt::fabric
