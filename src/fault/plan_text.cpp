#include "fault/plan_text.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fault/plan_words.h"
#include "fault/quantities.h"
#include "fault/words.h"

namespace ringbolt::fault {
namespace {

// IB_DEVICE_NAME_MAX of the kernel's RDMA core. Also as much as a message quotes of a bad word.
constexpr size_t kMaxPortBytes = 64;

bool is_port_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxPortBytes && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  });
}

/// The kind, and how likely it is. Frames always have a chance; other things happen each time unless it is said.
void read_kind(Words& words, Rule& rule) {
  const std::string_view word = words.next();
  const auto kind = kind_of(word);
  if (!kind) {
    words.complain(fmt::format("\"{}\" is no fault; there are {}", word.substr(0, kMaxPortBytes), kind_names()));
    return;
  }
  rule.kind = *kind;
  const std::string_view second = words.peek();
  const auto chance = read_chance(second);
  // No key looks like this: it is a chance that can't be.
  const bool is_meant_as_one =
      second.ends_with('%') || (!second.empty() && second.front() >= '0' && second.front() <= '9');
  // "1" is a chance too, and so can't be the first key of a state.
  if (chance && is_state(*kind)) {
    words.complain(fmt::format("{} has no chance: it holds, or it does not", name_of(*kind)));
  } else if (chance || is_meant_as_one || subject_of(*kind) == Subject::frame) {
    rule.chance = words.take(name_of(*kind), read_chance(words.next()),
                             "a chance from 0% to 100%, as in 1% or 0.01, with up to 9 digits");
  }
}

/// Which frames it is for. False: `key` is none of these.
bool read_choice(Words& words, std::string_view key, Rule& rule) {
  // Keys for how strong a fault is are tables of plan_words.cpp; these say what it befalls, and are the same for most
  // kinds.
  if (key == "seed") {
    rule.seed = words.take(key, read_count(words.next()), "a number");
  } else if (key == "node") {
    rule.node = static_cast<uint32_t>(words.number(key, 0, UINT32_MAX));
  } else if (key == "cable") {
    rule.cable = static_cast<uint32_t>(words.number(key, 0, UINT32_MAX));
  } else if (key == "port") {
    rule.port = words.next();
    if (!is_port_name(rule.port)) {
      words.complain("port takes the name of a device, as in rdma_en2");
    }
    // Calls, messages and completions have one direction, from the program's side.
  } else if (key == "direction" && subject_of(rule.kind) == Subject::frame) {
    const std::string_view way = words.next();
    if (way != "send" && way != "receive") {
      words.complain("direction takes send or receive");
    }
    rule.direction = way == "send" ? Direction::send : Direction::receive;
  } else if (!is_state(rule.kind) && key == (subject_of(rule.kind) == Subject::frame ? "frames" : "count")) {
    words.range(key, read_count, rule.first_frame, rule.last_frame);
  } else if (key == "time" && subject_of(rule.kind) != Subject::look) {
    words.range(key, read_time_ns, rule.from_ns, rule.until_ns);
  } else {
    return false;
  }
  return true;
}

base::Parsed<Rule> parse_rule(std::string_view text, size_t line) {
  Words words(text);
  Rule rule;
  read_kind(words, rule);
  // Views into `text`; as many as keys, of which there are about twenty.
  std::vector<std::string_view> seen;
  while (words.problem().empty() && !words.is_at_end()) {
    const std::string_view key = words.next();
    if (std::ranges::find(seen, key) != seen.end()) {
      words.complain(fmt::format("{} is said twice", key));
    } else if (!read_strength(words, key, rule) && !read_choice(words, key, rule)) {
      words.complain(fmt::format("{} does not know \"{}\"", name_of(rule.kind), key.substr(0, kMaxPortBytes)));
    }
    seen.push_back(key);
  }
  if (const std::string missing = missing_part(rule); words.problem().empty() && !missing.empty()) {
    words.complain(fmt::format("{} {}", name_of(rule.kind), missing));
  }
  if (!words.problem().empty()) {
    return base::refuse(line, words.problem());
  }
  return rule;
}

template <class Text>
std::string range_text(uint64_t first, uint64_t last, Text text) {
  return last == UINT64_MAX ? fmt::format("{}-", text(first)) : fmt::format("{}-{}", text(first), text(last));
}

}  // namespace

base::Parsed<Plan> parse_plan(std::string_view text) {
  if (text.size() > kMaxPlanBytes) {
    return base::refuse(0, fmt::format("{} bytes are more than a plan's {}", text.size(), kMaxPlanBytes));
  }
  Plan plan;
  size_t line = 1;
  while (!text.empty()) {
    // What begins with # lasts to the end of the line, semicolons and all.
    const size_t end = text.find_first_of("\n;#");
    const std::string_view piece = text.substr(0, end);
    if (piece.find_first_not_of(kBlanks) != std::string_view::npos) {
      auto rule = parse_rule(piece, line);
      if (!rule) {
        return tl::unexpected<base::ParseError>(std::move(rule.error()));
      }
      if (plan.rules.size() == Plan::kMaxRules) {
        return base::refuse(line, fmt::format("more than {} faults", Plan::kMaxRules));
      }
      plan.rules.push_back(std::move(*rule));
    }
    text.remove_prefix(piece.size());
    if (text.starts_with('#')) {
      text.remove_prefix(std::min(text.find('\n'), text.size()));
    }
    line += text.starts_with('\n') ? 1U : 0U;
    text.remove_prefix(text.empty() ? 0 : 1);
  }
  return plan;
}

std::string emit_rule(const Rule& rule) {
  // What a key that is left out means when it is read: the defaults of both must be the same.
  const Rule usual;
  const auto count = [](uint64_t value) { return std::to_string(value); };
  std::string text(name_of(rule.kind));
  text += is_state(rule.kind) ? "" : " " + chance_text(rule.chance);
  text += strength_text(rule);
  const auto add = [&](bool differs, std::string_view key, const std::string& value) {
    if (differs) {
      text += fmt::format(" {} {}", key, value);
    }
  };
  add(rule.seed != usual.seed, "seed", count(rule.seed));
  add(rule.node.has_value(), "node", count(rule.node.value_or(0)));
  add(rule.cable.has_value(), "cable", count(rule.cable.value_or(0)));
  add(!rule.port.empty(), "port", rule.port);
  add(rule.direction.has_value(), "direction", rule.direction == Direction::send ? "send" : "receive");
  add(rule.first_frame != 0 || rule.last_frame != UINT64_MAX,
      subject_of(rule.kind) == Subject::frame ? "frames" : "count",
      range_text(rule.first_frame, rule.last_frame, count));
  add(rule.from_ns != 0 || rule.until_ns != UINT64_MAX, "time", range_text(rule.from_ns, rule.until_ns, time_text));
  return text;
}

std::string emit_plan(const Plan& plan) {
  std::string text;
  for (const Rule& rule : plan.rules) {
    text += emit_rule(rule) + "\n";
  }
  return text;
}

}  // namespace ringbolt::fault
