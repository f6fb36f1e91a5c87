#include "port_use.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cluster/process_counts.h"

namespace ringbolt::tools {
namespace {

using Json = nlohmann::ordered_json;

uint64_t moved(const RingboltCounterSum& sum) {
  uint64_t total = 0;
  for (const char* name : {"port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets"}) {
    total += ringbolt_counter_value(ringbolt_find_counter("counters", name), &sum);
  }
  return total;
}

}  // namespace

void add_port_uses(const LiveCluster& live, std::vector<Program>& programs) {
  if (programs.empty()) {
    return;
  }
  for (uint32_t node = 0; node < live.model.nodes.size(); ++node) {
    if (live.here && *live.here != node) {
      continue;
    }
    for (const cluster::Port& port : live.model.nodes[node].ports) {
      const auto counts = cluster::read_counters_by_process(live.dir.counter_file(live.model.name, node, port.name));
      if (!counts) {
        continue;
      }
      for (const cluster::ProcessCount& count : *counts) {
        const auto program = std::ranges::find(programs, count.pid, &Program::pid);
        if (program != programs.end()) {
          program->node = live.model.nodes[node].name;
          program->ports.push_back({port.name, moved(count.sum)});
        }
      }
    }
  }
}

std::string programs_json(const std::vector<Program>& programs) {
  Json root{{"programs", Json::array()}};
  for (const Program& program : programs) {
    Json one{{"pid", program.pid}, {"command", program.command}, {"ports", Json::array()}};
    for (const PortUse& port : program.ports) {
      one["ports"].push_back({{"device", port.device}, {"moved", port.moved}});
    }
    root["programs"].push_back(std::move(one));
  }
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<Program> parse_programs(const std::string& text, const std::string& node) {
  std::vector<Program> programs;
  const size_t begin = text.rfind("{\"programs\":");
  try {
    const Json root = Json::parse(begin == std::string::npos ? "" : text.substr(begin));
    for (const Json& one : root.at("programs")) {
      Program program{one.at("pid").get<pid_t>(), one.at("command").get<std::string>(), node, {}};
      if (one.contains("ports")) {
        for (const Json& port : one.at("ports")) {
          program.ports.push_back({port.at("device").get<std::string>(), port.at("moved").get<uint64_t>()});
        }
      }
      programs.push_back(std::move(program));
    }
  } catch (const nlohmann::json::exception&) {
    return programs;
  }
  return programs;
}

}  // namespace ringbolt::tools
