#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "cluster/read_file.h"
#include "commands.h"
#include "failure.h"
#include "page_file.h"
#include "trace/begin.h"
#include "trace/recordings.h"
#include "trace/report.h"

namespace ringbolt::tools {
namespace trace_command {
namespace {

constexpr size_t kStepsOfPage = 60;

bool is_path(const std::string& word) { return word.find('/') != std::string::npos || word.ends_with(trace::kSuffix); }

void add_path(const std::string& path, std::vector<std::string>& paths) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    paths.push_back(path);
    return;
  }
  const auto found = files_in(path);
  if (found.empty()) {
    throw UsageError(fmt::format("{}: holds no timeline (*{})", path, trace::kSuffix));
  }
  paths.insert(paths.end(), found.begin(), found.end());
}

/// A cluster's, of some nodes (none: all).
std::vector<Recording> of_cluster(const std::string& wanted, const std::vector<std::string>& words) {
  const LiveCluster live = open_cluster(wanted);
  if (live.is_remote()) {
    throw UsageError(fmt::format("the nodes of cluster {} are other machines: fetch {} from them, and give these files",
                                 live.model.name, folder_of(live.dir, live.model.name)));
  }
  std::vector<std::string> nodes;
  for (const std::string& word : words) {
    nodes.push_back(std::to_string(find_node(live.model, word)));
  }
  auto all = read_recordings(files_in(folder_of(live.dir, live.model.name)), true);
  std::erase_if(all, [&](const Recording& one) {
    return !nodes.empty() && std::ranges::find(nodes, one.file.node) == nodes.end();
  });
  return all;
}

std::vector<Recording> chosen(const TraceOptions& options) {
  std::vector<std::string> paths;
  std::vector<std::string> nodes;
  bool is_outside = false;
  for (const std::string& word : options.words) {
    if (is_path(word)) {
      add_path(word, paths);
    } else if (word == "local") {
      is_outside = true;
    } else {
      nodes.push_back(word);
    }
  }
  std::vector<Recording> all = read_recordings(paths, false);
  const auto append = [&](std::vector<Recording> more) { std::ranges::move(more, std::back_inserter(all)); };
  const cluster::RuntimeDir dir = cluster::RuntimeDir::from_environment();
  const bool has_cluster =
      !options.cluster.empty() || std::getenv("RINGBOLT_CLUSTER") != nullptr || !cluster_names(dir).empty();
  if (is_outside || (options.words.empty() && !has_cluster)) {
    append(read_recordings(files_in(folder_outside(dir)), true));
  }
  if (!nodes.empty() || (options.words.empty() && has_cluster)) {
    append(of_cluster(options.cluster, nodes));
  }
  return all;
}

std::optional<uint32_t> number_in(const std::string& text) {
  if (text.empty()) {
    return std::nullopt;
  }
  const bool is_hex = text.starts_with("0x");
  const char* const begin = text.data() + (is_hex ? 2 : 0);
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number, is_hex ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size() || number == 0 || number > 0xffffff) {
    throw UsageError(fmt::format("--queue-pair {}: give a number up to 0xffffff, such as 0x4001", text));
  }
  return number;
}

}  // namespace

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> all = cluster::names_in(folder);
  std::erase_if(all, [](const std::string& name) { return !name.ends_with(trace::kSuffix); });
  std::ranges::transform(all, all.begin(), [&](const std::string& name) { return folder + "/" + name; });
  return all;
}

std::string folder_of(const cluster::RuntimeDir& dir, const std::string& cluster) {
  return dir.cluster(cluster) + "/traces";
}

std::string folder_outside(const cluster::RuntimeDir& dir) { return dir.default_dir() + "/traces"; }

std::string run_page(const LiveCluster& live, uint64_t since_ns) {
  auto all = read_recordings(files_in(folder_of(live.dir, live.model.name)), true);
  std::erase_if(all, [&](const Recording& one) {
    return std::ranges::all_of(one.file.moments, [&](const trace::Moment& moment) { return moment.ns < since_ns; });
  });
  return timeline_page(make_timeline(std::move(all), {}), kStepsOfPage);
}

}  // namespace trace_command

int trace_run(const TraceOptions& options) {
  namespace tc = trace_command;
  tc::Selection selection;
  selection.queue_pair = tc::number_in(options.queue_pair);
  selection.pid = options.pid;
  selection.since_s = options.since_s;
  PageFile chrome(options.chrome_path, "--chrome");
  PageFile page(options.html_path);
  auto recordings = tc::chosen(options);
  if (recordings.empty()) {
    throw FoundProblem(
        "nothing was recorded there; start programs with `ringbolt run --record`, or with RINGBOLT_RECORD=on");
  }
  const tc::Timeline timeline = tc::make_timeline(std::move(recordings), selection);
  if (timeline.sides.empty()) {
    throw FoundProblem(
        fmt::format("{} processes were recorded, and no queue pair of them is chosen; ask for other "
                    "ones, or for all",
                    timeline.recordings.size()));
  }
  chrome.write(options.chrome_path.empty() ? "" : tc::chrome_json(timeline));
  page.write(options.html_path.empty() ? "" : tc::timeline_page(timeline, tc::kStepsOfPage));
  if (options.is_json) {
    fmt::print("{}", tc::timeline_json(timeline));
  } else if (options.chrome_path.empty() && options.html_path.empty()) {
    fmt::print("{}", tc::timeline_text(timeline, options.last));
  }
  return kOk;
}

}  // namespace ringbolt::tools
