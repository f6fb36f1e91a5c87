#include "port_counts.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/say.h"
#include "cluster/counter_page.h"
#include "cluster/process_counts.h"
#include "cluster/read_file.h"
#include "sysroot.h"

namespace ringbolt::tools {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

bool read_values(const std::string& path, PortCounts& port, std::vector<std::string>& problems) {
  const auto sum = cluster::read_counters(path);
  if (!sum && sum.error().value != ENOENT) {
    const bool is_damaged = sum.error().value == EINVAL || sum.error().value == ELOOP;
    problems.push_back(base::Error(sum.error().value, is_damaged ? "not a file of counters" : "read the counters", path,
                                   is_damaged ? "remove it: what it counted is lost, nothing else" : "")
                           .what());
    return false;
  }
  const RingboltCounterSum counted = sum ? *sum : RingboltCounterSum{};
  for (const RingboltCounter& counter : cluster::all_counters()) {
    port.values.push_back(ringbolt_counter_value(&counter, &counted));
  }
  return true;
}

std::vector<std::string> names_in(const std::string& folder, std::vector<std::string>& problems) {
  try {
    return cluster::names_in(folder);
  } catch (const base::Error& error) {
    problems.emplace_back(error.what());
    return {};
  }
}

/// Ports whose files lie in `folder`, by name.
void add_folder(const std::string& folder, const std::string& node, std::vector<PortCounts>& ports,
                std::vector<std::string>& problems) {
  for (const std::string& name : names_in(folder, problems)) {
    const fs::path file(name);
    PortCounts port{"", node, file.stem().string(), "", 0, {}};
    if (file.extension() == cluster::RuntimeDir::kCounterSuffix && read_values(folder + "/" + name, port, problems)) {
      ports.push_back(std::move(port));
    }
  }
}

uint64_t moved(const RingboltCounterSum& sum) {
  uint64_t total = 0;
  for (const char* name : {"port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets"}) {
    total += ringbolt_counter_value(ringbolt_find_counter("counters", name), &sum);
  }
  return total;
}

}  // namespace

std::vector<PortCounts> cluster_counts(const LiveCluster& live, std::vector<std::string>& problems) {
  std::vector<PortCounts> ports;
  for (uint32_t node = 0; node < live.model.nodes.size(); ++node) {
    if (live.here && *live.here != node) {
      continue;
    }
    for (const cluster::PortSpec& spec : cluster::node_spec(live.model, node).ports) {
      PortCounts port{live.model.name, live.model.nodes[node].name,
                      spec.device,     live.control.cable_up(spec.cable) ? "up" : "cut",
                      spec.speed_gbps, {}};
      if (read_values(live.dir.counter_file(live.model.name, node, spec.device), port, problems)) {
        ports.push_back(std::move(port));
      }
    }
  }
  return ports;
}

std::vector<PortCounts> local_counts(const cluster::RuntimeDir& dir, std::vector<std::string>& problems) {
  std::vector<PortCounts> ports;
  const SysrootDevice device = local_device(dir, {});
  PortCounts port{"", "local", device.name, "up", device.speed_gbps, {}};
  if (read_values(device.counter_path, port, problems)) {
    ports.push_back(std::move(port));
  }
  add_folder(dir.default_slots(), "local", ports, problems);
  for (const std::string& name : names_in(dir.default_dir(), problems)) {
    if (name.starts_with("net-")) {
      add_folder(dir.default_dir() + "/" + name, "netns-" + name.substr(4), ports, problems);
    }
  }
  return ports;
}

void count_cut(const LiveCluster& live, uint32_t cable) {
  const cluster::Cable& cut = live.model.cables[cable];
  std::vector<cluster::CableEnd> ends{cut.a};
  if (!(cut.a == cut.b)) {
    ends.push_back(cut.b);
  }
  for (const cluster::CableEnd& end : ends) {
    if (live.here && *live.here != end.node) {
      continue;
    }
    const std::string& device = live.model.nodes[end.node].ports[end.port].name;
    try {
      cluster::CounterPage::open(live.dir.counter_file(live.model.name, end.node, device))->add(kSharedLinkDowned);
    } catch (const base::Error& error) {
      base::say(fmt::format("ringbolt: not counted: {}\n", error.what()));
    }
  }
}

std::string counts_json(const std::vector<PortCounts>& ports) {
  Json root{{"ports", Json::array()}};
  for (const PortCounts& port : ports) {
    Json one{{"cluster", port.cluster}, {"node", port.node}, {"device", port.device}, {"port", 1}};
    if (!port.state.empty()) {
      one["state"] = port.state;
    }
    if (port.speed_gbps != 0) {
      one["speed_gbps"] = port.speed_gbps;
    }
    for (size_t i = 0; i < port.values.size(); ++i) {
      const RingboltCounter& counter = cluster::all_counters()[i];
      one[counter.folder][counter.name] = port.values[i];
    }
    root["ports"].push_back(std::move(one));
  }
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::vector<PortCounts>> parse_counts(const std::string& text) {
  std::vector<PortCounts> ports;
  try {
    const Json root = Json::parse(text);
    for (const Json& one : root.at("ports")) {
      PortCounts port{one.at("cluster"),
                      one.at("node"),
                      one.at("device"),
                      one.value("state", std::string()),
                      one.value("speed_gbps", 0U),
                      {}};
      for (const RingboltCounter& counter : cluster::all_counters()) {
        const Json& folder = one.at(counter.folder);
        port.values.push_back(folder.contains(counter.name) ? folder.at(counter.name).get<uint64_t>() : 0);
      }
      ports.push_back(std::move(port));
    }
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  return ports;
}

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
