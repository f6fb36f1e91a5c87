#include "stream_setup.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cluster/cabling.h"
#include "cluster/read_file.h"
#include "cluster/runtime_dir.h"
#include "failure.h"
#include "ssh.h"
#include "thunderbolt_look.h"

namespace ringbolt::tools {
namespace {

/// Folders of ConfigFS that a cluster has made, by host, in the order in which they go away.
using StreamRecord = std::map<std::string, std::vector<std::string>>;

/// <runtime folder>/streams, where the records lie.
std::string stream_record_folder(const cluster::RuntimeDir& dir);

constexpr size_t kMostStreamRecordBytes = size_t{1} << 20U;

std::string path_of(const cluster::RuntimeDir& dir, const std::string& cluster) {
  return stream_record_folder(dir) + "/" + cluster + ".json";
}

/// What goes into commands again is checked again.
StreamRecord checked(StreamRecord record, const std::string& path) {
  for (const auto& [host, folders] : record) {
    if (!cluster::is_host(host) || !std::ranges::all_of(folders, is_plain_path)) {
      throw base::Error(EINVAL, "holds no hosts and folders", path, "remove it, and the streams by hand");
    }
  }
  return record;
}

std::string stream_record_folder(const cluster::RuntimeDir& dir) { return dir.root() + "/streams"; }

/// What is remembered of the cluster; empty: nothing. Throws base::Error if the file is damaged.
StreamRecord read_stream_record(const cluster::RuntimeDir& dir, const std::string& cluster) {
  const std::string path = path_of(dir, cluster);
  if (::access(path.c_str(), F_OK) != 0) {
    if (errno != ENOENT) {  // the record may be there, and is all that knows of the streams
      throw base::Error(errno, "look for", path);
    }
    return {};
  }
  const nlohmann::json json = nlohmann::json::parse(cluster::read_file(path, kMostStreamRecordBytes), nullptr, false);
  try {
    return checked(json.get<StreamRecord>(), path);
  } catch (const nlohmann::json::exception&) {
    throw base::Error(EINVAL, "is no record of streams", path, "remove it, and the streams by hand");
  }
}

/// Remembers this in place of what was; an empty record: forgets. Whole at any moment. Throws base::Error.
void write_stream_record(const cluster::RuntimeDir& dir, const std::string& cluster, const StreamRecord& record) {
  const std::string path = path_of(dir, cluster);
  if (record.empty()) {
    ::unlink(path.c_str());
    ::rmdir(stream_record_folder(dir).c_str());  // stays while others are in it
    return;
  }
  cluster::make_private_dir(stream_record_folder(dir));
  cluster::replace_file(path, nlohmann::json(record).dump(1) + "\n");
}

/// For one round: the other end's announcement may take 20 seconds, and there may be several links.
constexpr double kRoundS = 45;

struct Script {
  std::string host;
  std::string text;
};

std::vector<Script> scripts_of(const std::vector<std::string>& hosts, const std::vector<cluster::StreamSetup>& setups,
                               bool adopts) {
  std::vector<Script> scripts;
  for (uint32_t host = 0; host < hosts.size(); ++host) {
    if (std::string text = cluster::setup_script(setups, host, adopts); !text.empty()) {
      scripts.push_back({hosts[host], std::move(text)});
    }
  }
  return scripts;
}

std::string remedy_of(const std::string& said) {
  if (said.find("sudo") != std::string::npos) {
    return "log in as root (root@HOST), let sudo work without a password there, or type what `ringbolt up` prints "
           "without "
           "--apply";
  }
  if (said.find("usy") != std::string::npos) {
    return "a program has the stream open, or no hop ids are free: end it, or rmdir streams that nobody needs";
  }
  return "type what `ringbolt up` prints without --apply there, to see which command fails";
}

std::string problem_of(const std::string& host, const Captured& result) {
  const std::string problem = remote_problem(host, "", result);
  if (problem.empty() || result.is_late || result.exit_code == kSshFailed) {
    return problem;
  }
  const std::string said = one_line(result.error_output);
  return fmt::format("{}: could not set up streams: {}; {}", host,
                     said.empty() ? fmt::format("exit status {}", result.exit_code) : said, remedy_of(said));
}

/// Problem i is of script i; "" where there is none.
std::vector<std::string> run_scripts(const std::vector<Script>& scripts) {
  std::vector<Launch> launches;
  std::vector<std::string> inputs;
  for (const Script& script : scripts) {
    launches.push_back(root_shell_launch(script.host));
    inputs.push_back(script.text);
  }
  const std::vector<Captured> results = run_all(launches, inputs, kRoundS);
  std::vector<std::string> problems;
  for (size_t i = 0; i < scripts.size(); ++i) {
    problems.push_back(problem_of(scripts[i].host, results[i]));
  }
  return problems;
}

void remember(const cluster::RuntimeDir& dir, const std::string& cluster, const std::vector<std::string>& hosts,
              const std::vector<cluster::StreamSetup>& setups) {
  StreamRecord record = read_stream_record(dir, cluster);
  for (uint32_t host = 0; host < hosts.size(); ++host) {
    const std::vector<std::string> made = cluster::setup_folders(setups, host);
    if (made.empty()) {
      continue;
    }
    std::vector<std::string>& folders = record[hosts[host]];
    for (const std::string& folder : made) {
      if (std::ranges::find(folders, folder) == folders.end()) {
        folders.push_back(folder);
      }
    }
  }
  write_stream_record(dir, cluster, record);
}

}  // namespace

std::string setup_text(const std::vector<std::string>& hosts, const std::vector<cluster::StreamSetup>& setups) {
  std::string text;
  for (const bool adopts : {false, true}) {
    for (const Script& script : scripts_of(hosts, setups, adopts)) {
      text += fmt::format("{}# {}on {}, as root:\n{}", text.empty() ? "" : "\n", adopts ? "then, " : "", script.host,
                          script.text);
    }
  }
  return text;
}

void make_streams(const cluster::RuntimeDir& dir, const std::string& cluster, const std::vector<std::string>& hosts,
                  const std::vector<cluster::StreamSetup>& setups) {
  remember(dir, cluster, hosts, setups);
  for (const bool adopts : {false, true}) {
    std::vector<std::string> problems = run_scripts(scripts_of(hosts, setups, adopts));
    std::erase(problems, "");
    if (!problems.empty()) {
      const std::vector<std::string> left = remove_streams(dir, cluster);
      problems.insert(problems.end(), left.begin(), left.end());
      throw UsageError(fmt::format("{}", fmt::join(problems, "\n")));
    }
  }
}

std::vector<std::string> remove_streams(const cluster::RuntimeDir& dir, const std::string& cluster) {
  StreamRecord record = read_stream_record(dir, cluster);
  if (record.empty()) {
    return {};
  }
  std::vector<Script> scripts;
  for (const auto& [host, folders] : record) {
    scripts.push_back({host, cluster::undo_script(folders)});
  }
  std::vector<std::string> problems = run_scripts(scripts);
  for (size_t i = 0; i < scripts.size(); ++i) {
    if (problems[i].empty()) {
      record.erase(scripts[i].host);
    } else {
      problems[i] += fmt::format("; what was made there, if anything, is not taken away yet: {}",
                                 fmt::join(record[scripts[i].host], " "));
    }
  }
  std::erase(problems, "");
  write_stream_record(dir, cluster, record);
  return problems;
}

std::vector<std::string> clusters_with_streams(const cluster::RuntimeDir& dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(stream_record_folder(dir), error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".json") {
      names.push_back(at->path().stem());
    }
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace ringbolt::tools
