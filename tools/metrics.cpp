#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/say.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "hosts.h"
#include "port_counts.h"
#include "scrape_server.h"

namespace ringbolt::tools {
namespace {

struct Seen {
  std::vector<PortCounts> ports;
  std::vector<std::string> problems;
};

void add_cluster(const std::string& name, Seen& seen) {
  const LiveCluster live = open_cluster(name);
  std::vector<PortCounts> ports =
      live.is_remote() ? host_counts(live.model, seen.problems) : cluster_counts(live, seen.problems);
  std::move(ports.begin(), ports.end(), std::back_inserter(seen.ports));
}

/// Of the cluster that was asked for; without one, everything of this user's.
Seen look(const MetricsOptions& options) {
  const cluster::RuntimeDir dir = cluster::RuntimeDir::from_environment();
  Seen seen;
  if (!options.cluster.empty()) {
    add_cluster(choose_cluster(dir, options.cluster), seen);
    return seen;
  }
  seen.ports = local_counts(dir, seen.problems);
  for (const std::string& name : cluster_names(dir)) {
    try {
      add_cluster(name, seen);
    } catch (const std::exception& error) {  // it is stale, or goes down at this moment
      seen.problems.emplace_back(error.what());
    }
  }
  return seen;
}

void tell_problems(const Seen& seen) {
  for (const std::string& problem : seen.problems) {
    base::say(fmt::format("ringbolt metrics: {}\n", problem));
  }
}

Page page_of(const MetricsOptions& options) {
  try {
    const Seen seen = look(options);
    tell_problems(seen);
    return {true, exposition(seen.ports)};
  } catch (const std::exception& error) {
    base::say(fmt::format("ringbolt metrics: {}\n", error.what()));
    return {false, fmt::format("{}\n", error.what())};
  }
}

}  // namespace

int metrics(const MetricsOptions& options) {
  if (!options.listen.empty()) {
    if (options.is_json) {
      throw UsageError("--json and --listen exclude each other: a listener speaks Prometheus' text form");
    }
    look(options);  // a wrong cluster shows now
    serve_page(options.listen, [&options] { return page_of(options); });
    return kOk;
  }
  const Seen seen = look(options);
  fmt::print("{}", options.is_json ? counts_json(seen.ports) + "\n" : exposition(seen.ports));
  std::fflush(stdout);
  tell_problems(seen);
  return seen.problems.empty() ? kOk : kFoundProblem;
}

}  // namespace ringbolt::tools
