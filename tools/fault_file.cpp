#include "fault_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <stdexcept>

#include <fmt/format.h>

#include "base/error.h"
#include "cable_choice.h"
#include "cluster/read_file.h"
#include "failure.h"
#include "fault/plan_text.h"

namespace ringbolt::tools {
namespace {

constexpr const char* kSeparators = " \t\r\n;";

bool is_number(const std::string& word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

/// A plan knows numbers alone.
std::string as_number(const LiveCluster& live, const std::string& key, const std::string& word) {
  if (key == "node") {
    return std::to_string(find_node(live.model, word));
  }
  const bool is_cable = key == "cable" || key == "with";
  return is_cable && !is_number(word) ? std::to_string(find_cable(live, word)) : word;
}

std::string with_numbers(const LiveCluster& live, const std::string& text) {
  std::string result;
  std::string last;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = std::min(text.find_first_not_of(kSeparators, at), text.size());
    result += text.substr(at, begin - at);
    if (begin < text.size() && text[begin] == '#') {
      at = std::min(text.find('\n', begin), text.size());
      continue;
    }
    const size_t end = std::min(text.find_first_of(std::string(kSeparators) + "#", begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    result += as_number(live, last, word);
    last = word;
    at = end;
  }
  return result;
}

/// Whether an end of the cable does.
bool suffers(const LiveCluster& live, uint32_t cable, const fault::Rule& rule) {
  const auto does_end = [&](const cluster::CableEnd& end, const cluster::CableEnd& other) {
    const fault::Place place{end.node, cable, live.model.nodes[end.node].ports[end.port].name, other.node};
    return rule.applies_to(place, fault::Direction::send) || rule.applies_to(place, fault::Direction::receive);
  };
  const cluster::Cable& both = live.model.cables[cable];
  return does_end(both.a, both.b) || does_end(both.b, both.a);
}

bool fits(const LiveCluster& live, const fault::Rule& rule) {
  for (uint32_t cable = 0; cable < live.model.cables.size(); ++cable) {
    if (suffers(live, cable, rule)) {
      return true;
    }
  }
  return false;
}

bool is_death(const fault::Rule& rule) {
  const bool is_for_good = rule.from_ns == 0 && rule.until_ns == UINT64_MAX;
  return is_for_good && (rule.kind == fault::Kind::frozen || (rule.kind == fault::Kind::unplug && rule.delay_ns == 0));
}

}  // namespace

fault::Plan load_faults(const cluster::RuntimeDir& dir, const std::string& name) {
  const std::string path = dir.fault_file(name);
  std::string text;
  try {
    text = cluster::read_file(path, fault::kMaxPlanBytes);
  } catch (const base::Error& error) {
    if (error.errno_value() != ENOENT) {
      throw;
    }
    return {};  // there are none: not looked for before, since `fault clear` may remove the file at any time
  }
  auto plan = fault::parse_plan(text);
  if (!plan) {
    throw UsageError(fmt::format("{}: {}; ringbolt fault clear removes it", path, plan.error().text()));
  }
  return std::move(*plan);
}

std::vector<bool> dead_cables(const LiveCluster& live) {
  fault::Plan plan;
  try {
    plan = load_faults(live.dir, live.model.name);
  } catch (const std::runtime_error&) {
    // Damaged: then no program has any.
  }
  std::erase_if(plan.rules, [](const fault::Rule& rule) { return !is_death(rule); });
  std::vector<bool> is_dead;
  for (uint32_t cable = 0; cable < live.model.cables.size(); ++cable) {
    is_dead.push_back(std::ranges::any_of(plan.rules, [&](const auto& rule) { return suffers(live, cable, rule); }));
  }
  return is_dead;
}

size_t store_faults(LiveCluster& live, const fault::Plan& plan) {
  const std::string path = live.dir.fault_file(live.model.name);
  if (plan.rules.empty()) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
      throw base::Error(errno, "remove", path);
    }
  } else {
    cluster::replace_file(path, fault::emit_plan(plan));
  }
  live.control.announce();
  return poke_cluster(live.dir, live.model.name);
}

fault::Plan read_faults(const LiveCluster& live, const std::string& text) {
  auto plan = fault::parse_plan(with_numbers(live, text));
  if (!plan) {
    throw UsageError(plan.error().text());
  }
  for (const fault::Rule& rule : plan->rules) {
    if (live.model.kind == cluster::Kind::emulated && fault::subject_of(rule.kind) == fault::Subject::frame) {
      throw UsageError(fmt::format(
          "\"{}\": cluster \"{}\" is emulated in memory, which carries no frames that could be lost; make one that has "
          "frames: ringbolt up --netns, or --hosts",
          fault::emit_rule(rule), live.model.name));
    }
    if (!fits(live, rule)) {
      throw UsageError(fmt::format("\"{}\" fits no cabled port of cluster \"{}\"; ringbolt devices shows them",
                                   fault::emit_rule(rule), live.model.name));
    }
  }
  return std::move(*plan);
}

}  // namespace ringbolt::tools
