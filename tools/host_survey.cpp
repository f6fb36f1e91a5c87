#include "host_survey.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include <fmt/format.h>

#include "base/say.h"
#include "cluster/cabling.h"
#include "cluster/cluster_file.h"
#include "cluster/names.h"
#include "failure.h"
#include "host_look.h"
#include "node_environment.h"
#include "ssh.h"
#include "version.h"

namespace ringbolt::tools {
namespace {

struct FoundHost {
  std::string host;
  HostLook look;
};

std::vector<FoundHost> look_at(const std::vector<std::string>& hosts, const std::string& prefix) {
  std::vector<Launch> asked;
  for (const std::string& host : hosts) {
    asked.push_back(ssh_launch(host, prefix, {"host", "look"}));
  }
  const std::vector<Captured> results = run_all(asked, {}, kSshPatienceS);
  std::vector<FoundHost> found;
  std::vector<std::string> problems;
  for (size_t i = 0; i < hosts.size(); ++i) {
    std::string problem = remote_problem(hosts[i], prefix, results[i]);
    if (problem.empty()) {
      HostLook look = parse_look(hosts[i], results[i].output);
      if (look.version != kVersion) {
        problem = fmt::format("{} has Ringbolt {}, here is {}: install the same", hosts[i], look.version, kVersion);
      }
      found.push_back({hosts[i], std::move(look)});
    }
    if (!problem.empty()) {
      problems.push_back(std::move(problem));
    }
  }
  if (!problems.empty()) {
    refuse_with(problems);
  }
  return found;
}

std::vector<cluster::HostInterfaces> interfaces_of(const std::vector<FoundHost>& found) {
  std::vector<cluster::HostInterfaces> hosts;
  for (const FoundHost& one : found) {
    hosts.push_back({one.host, one.look.interfaces});
  }
  return hosts;
}

/// A cluster file says itself what carries its cables.
void refuse_choices(const UpOptions& options) {
  if (options.is_applied || options.over != "auto") {
    throw UsageError(
        fmt::format("--apply and --over are for hosts whose cables `up` looks for: name them (a,b,c) in place "
                    "of the file {}, or leave the options out",
                    options.hosts));
  }
}

bool wants_streams(const UpOptions& options, const std::vector<FoundHost>& found) {
  if (options.over != "auto") {
    if (options.is_applied && options.over == "network") {
      throw UsageError("--apply makes Thunderbolt streams: leave --over network out");
    }
    return options.over == "streams";
  }
  return options.is_applied ||
         std::ranges::any_of(found, [](const FoundHost& one) { return cluster::offers_streams(one.look.thunderbolt); });
}

void add_stream_cables(const UpOptions& options, const std::vector<FoundHost>& found, HostSurvey& survey) {
  std::vector<cluster::HostThunderbolt> hosts;
  for (const FoundHost& one : found) {
    hosts.push_back({one.host, one.look.thunderbolt});
  }
  cluster::StreamCabling cabling = cluster::find_stream_cables(hosts);
  for (const std::string& note : cabling.notes) {
    base::say(fmt::format("ringbolt up: {}\n", note));
  }
  if (!cabling.problems.empty()) {
    if (options.over == "auto" && !options.is_applied) {
      cabling.problems.emplace_back(
          "Some of these machines have Thunderbolt streams; a cluster is on streams or on network interfaces. For "
          "interfaces: --over network");
    }
    refuse_with(cabling.problems);
  }
  survey.model = std::move(cabling.cluster);
  survey.setups = std::move(cabling.setups);
}

/// Where there are no cables between interfaces, it says why there are none over Thunderbolt either.
cluster::Cluster network_cables(const std::vector<FoundHost>& found) {
  cluster::Parsed<cluster::Cluster> cabled = cluster::find_cables(interfaces_of(found));
  if (cabled) {
    return std::move(*cabled);
  }
  std::vector<std::string> problems{cabled.error().text()};
  for (const FoundHost& one : found) {
    const std::string reason = cluster::why_no_streams({one.host, one.look.thunderbolt});
    if (!one.look.thunderbolt.peers.empty() && !reason.empty()) {
      problems.push_back("as to Thunderbolt, " + reason);
    }
  }
  refuse_with(problems);
}

}  // namespace

bool names_a_file(const std::string& text) {
  const std::string_view ending = ".json";
  return text.find("://") == std::string::npos &&
         (text.find('/') != std::string::npos ||
          (text.size() > ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0));
}

std::vector<std::string> split_hosts(const std::string& text) {
  std::vector<std::string> hosts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string host = text.substr(begin, end - begin);
    if (!cluster::is_host(host)) {
      throw UsageError(
          fmt::format("--hosts \"{}\": \"{}\" is no host; give a cluster file (a path, or a name that ends in "
                      ".json) or hosts as ssh knows them: a,b,c",
                      text, host));
    }
    if (std::find(hosts.begin(), hosts.end(), host) != hosts.end()) {
      throw UsageError(fmt::format("--hosts: {} is given twice", host));
    }
    hosts.push_back(host);
    begin = end + 1;
  }
  if (hosts.size() > cluster::kMaxNodes) {
    throw UsageError(fmt::format("--hosts: {} hosts are more than a cluster's {}", hosts.size(), cluster::kMaxNodes));
  }
  return hosts;
}

HostSurvey survey_hosts(const UpOptions& options) {
  HostSurvey survey;
  const bool has_file = names_a_file(options.hosts);
  if (has_file) {
    refuse_choices(options);
    survey.model = cluster::load_cluster(options.hosts);
    std::ranges::transform(survey.model.nodes, std::back_inserter(survey.hosts), host_of);
  } else {
    survey.hosts = split_hosts(options.hosts);
  }
  std::string prefix = options.prefix.empty() ? survey.model.prefix : options.prefix;
  if (prefix.empty()) {
    prefix = own_prefix();
  }
  if (!cluster::is_prefix(prefix)) {
    throw UsageError(fmt::format("--prefix \"{}\" is no absolute path", prefix));
  }
  const std::vector<FoundHost> found = look_at(survey.hosts, prefix);
  if (!has_file) {
    if (wants_streams(options, found)) {
      add_stream_cables(options, found, survey);
    } else {
      survey.model = network_cables(found);
    }
    survey.model.name = "hosts";
  }
  if (survey.setups.empty()) {
    cluster::Parsed<cluster::Cluster> whole =
        cluster::with_found_addresses(std::move(survey.model), interfaces_of(found));
    if (!whole) {
      throw UsageError(whole.error().text());
    }
    survey.model = std::move(*whole);
  }
  survey.model.prefix = prefix;
  return survey;
}

}  // namespace ringbolt::tools
