#include "shuffle/wish.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/text_fields.h"

namespace ringbolt::shuffle {
namespace {

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// "17", "3-20", "3-".
std::optional<Range> range_of(std::string_view text) {
  const bool is_open = text.ends_with('-');
  const bool is_one = text.find('-') == std::string_view::npos;
  const auto first = number_of<uint32_t>(base::take_until(text, '-'));
  const auto last = is_one ? first : is_open ? std::optional(Range::kAll) : number_of<uint32_t>(text);
  // 0 is no operation: they are numbered from 1.
  return first && last && *first != 0 && *first <= *last ? std::optional(Range{*first, *last}) : std::nullopt;
}

std::string known_kinds() {
  std::string names;
  for (const KindText& one : kKindTexts) {
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  }
  return names;
}

base::Parsed<Wish> parse_kinds(uint64_t seed, std::string_view text) {
  Wish wish{seed, {}};
  // None, until it is named.
  wish.ranges.fill({1, 0});
  while (!text.empty()) {
    std::string_view word = base::take_until(text, ',');
    const std::string_view name = base::take_until(word, '@');
    const auto* const known = std::ranges::find(kKindTexts, name, &KindText::name);
    if (known == kKindTexts.end()) {
      return base::refuse(0, fmt::format("\"{}\" is no kind: give some of {}", name, known_kinds()));
    }
    const auto range = word.empty() ? std::optional(Range{}) : range_of(word);
    if (!range) {
      return base::refuse(0, fmt::format("{}@{}: give the number of an operation, from 1, or two: 3-20", name, word));
    }
    wish.ranges[static_cast<size_t>(known - kKindTexts.begin())] = *range;
  }
  return wish;
}

}  // namespace

base::Parsed<Seeds> parse_seeds(std::string_view text) {
  const bool has_kinds = text.find(':') != std::string_view::npos;
  std::string_view seeds = base::take_until(text, ':');
  const bool is_one = seeds.find('-') == std::string_view::npos;
  const std::string said(seeds);
  const auto first = number_of<uint64_t>(base::take_until(seeds, '-'));
  const auto last = is_one ? first : number_of<uint64_t>(seeds);
  if (!first || !last || *last < *first) {
    return base::refuse(0,
                        fmt::format("\"{}\" is no seed: give a whole number, and kinds behind it: 7:late,order", said));
  }
  if (has_kinds && text.empty()) {
    return base::refuse(0, "no kind stands behind the colon: give some of " + known_kinds());
  }
  if (!has_kinds) {
    return Seeds{*first, *last, Wish{*first, {}}};
  }
  auto wish = parse_kinds(*first, text);
  return wish ? base::Parsed<Seeds>(Seeds{*first, *last, *wish}) : tl::unexpected(wish.error());
}

base::Parsed<Wish> parse_wish(std::string_view text) {
  auto seeds = parse_seeds(text);
  if (!seeds) {
    return tl::unexpected(seeds.error());
  }
  if (seeds->first != seeds->last) {
    return base::refuse(0, "one seed at a time; `ringbolt run --shuffle 1-1000 -- CMD` tries many");
  }
  return seeds->wish;
}

std::string text_of(const Wish& wish) {
  std::string kinds;
  for (size_t i = 0; i < kKinds; ++i) {
    const Range& range = wish.ranges[i];
    if (range.last == 0) {
      continue;
    }
    kinds += kinds.empty() ? ":" : ",";
    kinds += kKindTexts[i].name;
    if (range != Range{}) {
      kinds += range.last == Range::kAll   ? fmt::format("@{}-", range.first)
               : range.first == range.last ? fmt::format("@{}", range.first)
                                           : fmt::format("@{}-{}", range.first, range.last);
    }
  }
  return std::to_string(wish.seed) + (wish == Wish{wish.seed, {}} ? "" : kinds);
}

}  // namespace ringbolt::shuffle
