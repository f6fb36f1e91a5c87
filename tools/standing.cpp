#include "standing.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

namespace ringbolt::tools {
namespace {

struct Looks {
  const cluster::Cluster& model;
  const std::vector<bool>& is_up;
  const std::vector<Program>& before;
  const std::vector<Program>& now;
  const std::vector<Death>& deaths;
};

bool has_moved(const Program& program, const std::vector<Program>& before) {
  const auto same = [&](const Program& one) { return one.pid == program.pid && one.node == program.node; };
  const auto earlier = std::ranges::find_if(before, same);
  return earlier == before.end() || earlier->ports != program.ports;
}

/// A cable seen from a port that a program has open.
struct Way {
  uint32_t cable = 0;
  uint32_t to = 0;  // node at the other end
};

std::vector<Way> ways_of(const Looks& looks, const Program& program) {
  std::vector<Way> ways;
  const auto add = [&](const cluster::CableEnd& end, const cluster::CableEnd& other, uint32_t cable) {
    const cluster::Node& node = looks.model.nodes[end.node];
    if (node.name == program.node && std::ranges::any_of(program.ports, [&](const PortUse& port) {
          return port.device == node.ports[end.port].name;
        })) {
      ways.push_back({cable, other.node});
    }
  };
  for (uint32_t cable = 0; cable < looks.model.cables.size(); ++cable) {
    add(looks.model.cables[cable].a, looks.model.cables[cable].b, cable);
    add(looks.model.cables[cable].b, looks.model.cables[cable].a, cable);
  }
  return ways;
}

std::string cut_text(const Looks& looks, const std::vector<Way>& ways) {
  std::set<uint32_t> cut;
  for (const Way& way : ways) {
    if (!looks.is_up[way.cable]) {
      cut.insert(way.cable);
    }
  }
  std::string text;
  for (const uint32_t index : cut) {
    const cluster::Cable& cable = looks.model.cables[index];
    text += fmt::format("{}cable {} ({} - {})", text.empty() ? "" : ", ", index,
                        cluster::end_text(looks.model, cable.a), cluster::end_text(looks.model, cable.b));
  }
  return text.empty() ? "" : text + (cut.size() == 1 ? " is cut" : " are cut");
}

/// What keeps a program on `node` from moving; adds the nodes that it may be waiting for to `next`.
std::string cause_at(const Looks& looks, const Program& program, std::vector<uint32_t>& next) {
  const std::vector<Way> ways = ways_of(looks, program);
  if (std::string text = cut_text(looks, ways); !text.empty()) {
    return text;
  }
  for (const Way& way : ways) {
    next.push_back(way.to);
  }
  return "";
}

std::string death_at(const Looks& looks, uint32_t node) {
  for (const Death& death : looks.deaths) {
    if (!death.is_over && death.node == looks.model.nodes[node].name) {
      return death.text();
    }
  }
  return "";
}

/// Breadth first, so that the nearest cause is named.
std::string cause_of(const Looks& looks, const Program& program) {
  std::vector<uint32_t> next;
  std::string cause = cause_at(looks, program, next);
  std::set<uint32_t> seen;
  for (size_t i = 0; cause.empty() && i < next.size(); ++i) {
    const uint32_t node = next[i];
    if (!seen.insert(node).second) {
      continue;
    }
    cause = death_at(looks, node);
    for (const Program& other : looks.now) {
      if (cause.empty() && other.node == looks.model.nodes[node].name && !has_moved(other, looks.before)) {
        cause = cause_at(looks, other, next);
      }
    }
  }
  return cause;
}

}  // namespace

std::string Death::text() const { return fmt::format("node {}'s {} (pid {}) {}", node, command, pid, how); }

const char* state_text(Standing::State state) {
  constexpr std::array kTexts{"active", "idle", "stalled"};
  return kTexts.at(static_cast<size_t>(state));
}

std::string standing_text(const Standing& standing) {
  const Program& program = standing.program;
  const bool is_explained = standing.state == Standing::State::kStalled;
  return fmt::format("node {}'s {} (pid {}) moves nothing{} {}", program.node, program.command, program.pid,
                     is_explained ? ":" : ",",
                     is_explained ? standing.cause : "and no cut cable or failed program says why");
}

std::vector<Standing> standings(const cluster::Cluster& model, const std::vector<bool>& is_up,
                                const std::vector<Program>& before, const std::vector<Program>& now,
                                const std::vector<Death>& deaths) {
  const Looks looks{model, is_up, before, now, deaths};
  std::vector<Standing> all;
  for (const Program& program : now) {
    Standing standing{program, Standing::State::kActive, ""};
    if (!has_moved(program, before)) {
      standing.cause = cause_of(looks, program);
      standing.state = standing.cause.empty() ? Standing::State::kIdle : Standing::State::kStalled;
    }
    all.push_back(std::move(standing));
  }
  return all;
}

}  // namespace ringbolt::tools
