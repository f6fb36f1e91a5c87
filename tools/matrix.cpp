#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/say.h"
#include "cluster/read_file.h"
#include "commands.h"
#include "failure.h"
#include "far_cables.h"
#include "heat_map.h"
#include "measurement.h"
#include "node_environment.h"
#include "page_file.h"
#include "progress_line.h"
#include "relayed/measure.h"
#include "stop.h"
#include "table.h"
#include "text_wrap.h"
#include "thresholds.h"

namespace ringbolt::tools {
namespace {

using Json = nlohmann::ordered_json;
using Kind = Table::Kind;

/// "AMD EPYC 7B13, 2 processors".
std::string machine_text() {
  std::string model = "unknown processor";
  try {
    std::istringstream lines(cluster::read_file("/proc/cpuinfo", size_t{16} << 20U));
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos) {
        model = line.substr(line.find(": ") + 2);
        break;
      }
    }
  } catch (const base::Error&) {
    // It stays unknown; nothing hangs on it.
  }
  return fmt::format("{}, {} processors", model, ::sysconf(_SC_NPROCESSORS_ONLN));
}

bool has_relayed(const std::vector<Direction>& directions) {
  return std::ranges::any_of(directions, [](const Direction& one) { return one.hops > 1; });
}

/// "RC SEND", "UC SEND" or, where ports have different types, both.
std::string operation_text(const std::vector<Direction>& directions) {
  const auto has = [&](bool is_reliable) {
    return std::ranges::any_of(directions, [&](const Direction& one) {
      return one.cable != Direction::kNoCable && one.state == Direction::State::kMeasured &&
             one.is_reliable == is_reliable;
    });
  };
  return has(false) ? has(true) ? "RC and UC SEND" : "UC SEND" : "RC SEND";
}

std::string conditions_text(const MatrixOptions& options, const std::vector<Direction>& directions) {
  return fmt::format(
      "{}{}; latency over up to {} round trips of 8 bytes, bandwidth over up to {} messages of {} bytes each way, "
      "and {} s a figure at most",
      operation_text(directions), has_relayed(directions) ? " over cables, messages of a group where others relay" : "",
      options.rounds, options.messages, options.size_bytes, options.phase_s);
}

std::vector<Direction> measure_all(const LiveCluster& live, const MatrixOptions& options) {
  Progress progress;
  const PairWatch watch = watch_of(progress);
  const auto measure = [&](uint32_t cable, const char* again) {
    progress.show(fmt::format("measuring cable {} of {}{}", cable + 1, live.model.cables.size(), again));
    return is_stopped() ? std::vector<Direction>() : measure_cable(live, cable, options, watch);
  };
  std::vector<Direction> directions;
  for (uint32_t index = 0; index < live.model.cables.size(); ++index) {
    std::ranges::move(measure(index, ""), std::back_inserter(directions));
  }
  judge_cables(live.model, directions, [&](uint32_t cable) { return measure(cable, " again"); });
  if (!options.is_neighbours && !is_stopped()) {
    progress.show("measuring pairs that others relay");
    std::ranges::move(relayed::measure_relayed(live, options, watch), std::back_inserter(directions));
  }
  if (is_stopped()) {  // what was under way then says nothing
    std::erase_if(directions, [](const Direction& one) { return one.state == Direction::State::kFailed; });
    std::ranges::for_each(directions, [](Direction& one) { one.far.clear(); });
  }
  return directions;
}

std::string json_text(const LiveCluster& live, const MatrixOptions& options, const std::vector<Direction>& directions) {
  Json root{{"cluster", live.model.name}, {"kind", cluster::kind_text(live.model.kind)},
            {"machine", machine_text()},  {"operation", operation_text(directions)},
            {"latency_bytes", 8},         {"bandwidth_bytes", options.size_bytes},
            {"directions", Json::array()}};
  for (const Direction& one : directions) {
    Json json{{"cable", one.cable == Direction::kNoCable ? Json(nullptr) : Json(one.cable)},
              {"from", from_text(live.model, one)},
              {"to", to_text(live.model, one)},
              {"state", state_text(one.state)}};
    if (one.hops > 0) {
      json["hops"] = one.hops;
    }
    if (!one.through.empty()) {
      for (const uint32_t node : one.through) {
        json["through"].push_back(live.model.nodes[node].name);
      }
    }
    if (one.state == Direction::State::kMeasured) {
      json["latency_us"] = one.latency_us;
      json["latency_p99_us"] = one.latency_p99_us;
      json["latency_max_us"] = one.latency_most_us;
      json["rounds"] = one.rounds;
      json["bandwidth_gbps"] = one.bandwidth_gbps;
      json["verified_bytes"] = one.verified_bytes;
      json["starved_share"] = one.starved_share;
      json["starved_latency_share"] = one.starved_latency_share;
      if (!one.far.empty()) {
        json["far"] = one.far;
      }
    } else if (!one.problem.empty()) {
      json["problem"] = one.problem;
    }
    root["directions"].push_back(std::move(json));
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void print_table(const LiveCluster& live, const std::vector<Direction>& directions) {
  Table table("directions",
              {{"FROM"},
               {"TO"},
               {"STATE"},
               {"HOPS", Kind::kNumber},
               {"LATENCY_US", Kind::kNumber},
               {"P99_US", Kind::kNumber},
               {"MAX_US", Kind::kNumber},
               {"BANDWIDTH_GBPS", Kind::kNumber}},
              false);
  for (const Direction& one : directions) {
    const bool is_measured = one.state == Direction::State::kMeasured;
    const auto text = [&](double figure) { return is_measured ? figure_text(figure) : std::string(); };
    table.add({from_text(live.model, one), to_text(live.model, one), state_text(one.state),
               one.hops > 0 ? std::to_string(one.hops) : std::string(), text(one.latency_us), text(one.latency_p99_us),
               text(one.latency_most_us), text(one.bandwidth_gbps)});
  }
  table.print();
}

/// What the figures are of.
std::string caveat(cluster::Kind kind) {
  switch (kind) {
    case cluster::Kind::netns:
      return fmt::format("Network namespaces: figures of this machine's kernel ({}), not of cables.", machine_text());
    case cluster::Kind::hosts:
      return fmt::format("Between machines, by RoCEv2 in software; commanded from this one ({}).", machine_text());
    case cluster::Kind::emulated:
      break;
  }
  return fmt::format("Emulated cluster: figures of this machine's memory ({}), not of cables.", machine_text());
}

void print_maps(const LiveCluster& live, const MatrixOptions& options, const std::vector<Direction>& directions) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool has_colours = ::isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
  const HeatMap latency = latency_map(live.model, directions);
  if (terminal_width(latency) > terminal_columns()) {
    print_table(live, directions);
  } else {
    fmt::print("{}\n{}", terminal_text(latency, has_colours),
               terminal_text(bandwidth_map(live.model, directions), has_colours));
  }
  fmt::print("\n{}.\n{}\n", conditions_text(options, directions), caveat(live.model.kind));
}

/// Said once per direction, on stderr, whatever the form of the output; but what ails a group, once for all that it was
/// to measure.
int report_problems(const LiveCluster& live, const std::vector<Direction>& directions) {
  int answer = kOk;
  std::map<std::string, size_t> n_alike;
  for (const Direction& one : directions) {
    n_alike[one.problem] += one.cable == Direction::kNoCable ? 1U : 0U;
  }
  for (const Direction& one : directions) {
    if (!one.far.empty()) {
      answer = kFoundProblem;
      base::say(
          fmt::format("ringbolt matrix: cable {}, {} to {}: {}, measured again and again; see ringbolt fault list\n",
                      one.cable, from_text(live.model, one), to_text(live.model, one), one.far));
    }
    // Nodes that no way joins are no trouble of their own: the cut cable is, or they were never joined.
    if (one.state == Direction::State::kMeasured || one.state == Direction::State::kUnreachable) {
      continue;
    }
    answer = kFoundProblem;
    const std::string from = from_text(live.model, one);
    const std::string to = to_text(live.model, one);
    if (one.cable == Direction::kNoCable) {
      if (const size_t count = std::exchange(n_alike[one.problem], 0); count > 0) {
        const std::string others = count == 1 ? "" : fmt::format(" (and {} more)", count - 1);
        base::say(fmt::format("ringbolt matrix: {} to {}{}, relayed: {}\n", from, to, others, one.problem));
      }
    } else if (one.state == Direction::State::kFailed) {
      base::say(fmt::format("ringbolt matrix: cable {}, {} to {}: {}\n", one.cable, from, to, one.problem));
    } else if (one.from == live.model.cables[one.cable].a) {
      base::say(
          fmt::format("ringbolt matrix: cable {} is cut; plug it in: ringbolt heal {}-{}\n", one.cable, from, to));
    }
  }
  return answer;
}

}  // namespace

int matrix(const MatrixOptions& options) {
  const bool prints_page = options.html_path == "-";
  if (prints_page && options.is_json) {
    throw UsageError("--json and --html - both want stdout: give --html a path");
  }
  check_thresholds(options.fail_if);
  const LiveCluster live = open_cluster(options.cluster);
  if (!live.is_remote()) {
    library_folder();  // refuses before anything is opened
  }
  PageFile page(options.html_path);
  catch_stop();
  const std::vector<Direction> directions = measure_all(live, options);
  page.write(html_report({live.model.name, conditions_text(options, directions), caveat(live.model.kind)}, live.model,
                         directions));
  if (options.is_json) {
    fmt::print("{}", json_text(live, options, directions));
  } else if (!prints_page) {
    print_maps(live, options, directions);
  }
  std::fflush(stdout);
  if (is_stopped()) {
    base::say("ringbolt matrix: interrupted: this is what was measured until then\n");
  }
  const int status = report_problems(live, directions);
  return answer_unless_stopped(
      options.fail_if.empty() ? status
                              : status_within(status, "matrix", json_text(live, options, directions), options.fail_if));
}

}  // namespace ringbolt::tools
