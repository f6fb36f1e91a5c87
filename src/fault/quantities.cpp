#include "fault/quantities.h"

#include <charconv>

#include <fmt/format.h>

#include "fault/rule.h"

namespace ringbolt::fault {
namespace {

struct Unit {
  std::string_view name;
  uint64_t ns;
};
// Longest first: "ms" ends in "s".
constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}, {"min", 60'000'000'000}};

}  // namespace

std::optional<uint64_t> read_count(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::optional<uint32_t> read_chance(std::string_view text) {
  const bool is_percent = text.ends_with('%');
  uint64_t unit = Rule::kCertain;  // of the digit before the point
  if (is_percent) {
    text.remove_suffix(1);
    unit /= 100;
  }
  const size_t point = text.find('.');
  const auto whole = read_count(text.substr(0, point));
  // Bounded before it is multiplied; whether it is a chance is seen at the end.
  if (!whole || *whole > 100) {
    return std::nullopt;
  }
  uint64_t chance = *whole * unit;
  if (point != std::string_view::npos) {
    const std::string_view digits = text.substr(point + 1);
    if (digits.empty()) {
      return std::nullopt;
    }
    for (const char digit : digits) {
      // 0 is left of the unit once a digit can't be held: nine without a percent sign, seven with one.
      if (digit < '0' || digit > '9' || (unit /= 10) == 0) {
        return std::nullopt;
      }
      chance += static_cast<uint64_t>(digit - '0') * unit;
    }
  }
  return chance > Rule::kCertain ? std::nullopt : std::optional(static_cast<uint32_t>(chance));
}

// As percent, with seven digits after the point: exact, as kCertain / 100 is 10^7.
std::string chance_text(uint32_t chance) {
  constexpr uint32_t kPercent = Rule::kCertain / 100;
  std::string text = fmt::format("{}.{:07}", chance / kPercent, chance % kPercent);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) {
    text.pop_back();
  }
  return text + "%";
}

std::optional<uint64_t> read_time_ns(std::string_view text) {
  for (const Unit& unit : kUnits) {
    if (text.ends_with(unit.name)) {
      const auto value = read_count(text.substr(0, text.size() - unit.name.size()));
      // The multiplication can't wrap.
      if (!value || *value > UINT64_MAX / unit.ns) {
        return std::nullopt;
      }
      return *value * unit.ns;
    }
  }
  return std::nullopt;
}

std::string time_text(uint64_t time_ns) {
  if (time_ns == 0) {
    return "0s";
  }
  const Unit* best = &kUnits[0];
  for (const Unit& unit : kUnits) {
    // kUnits rises, so that the last that divides is the largest.
    best = time_ns % unit.ns == 0 ? &unit : best;
  }
  return fmt::format("{}{}", time_ns / best->ns, best->name);
}

}  // namespace ringbolt::fault
