#include "doctor/recording.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "cluster/cabling.h"
#include "cluster/read_file.h"
#include "doctor/facts.h"
#include "failure.h"
#include "standard_input.h"

namespace ringbolt::tools::doctor {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = size_t{64} << 20U;
constexpr std::string_view kFirstLine = "ringbolt-recording 1";

std::vector<std::string_view> lines_without_ends(std::string_view text) {
  std::vector<std::string_view> lines = lines_of(text);
  for (std::string_view& line : lines) {
    line.remove_suffix(line.ends_with('\r') ? 1 : 0);
  }
  return lines;
}

/// The reading that a header line "HOST SOURCE" begins, empty; null if it is none. The host "." is `host`.
Reading* begin_reading(Recording& recording, std::string_view words, const std::string& host) {
  const size_t space = words.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == words.size()) {
    return nullptr;
  }
  const std::string_view name = words.substr(0, space);
  Reading& reading = recording.at(name == "." ? host : name, words.substr(space + 1));
  reading.text.clear();
  reading.problem.clear();
  return &reading;
}

/// How the output of a program begins.
struct Beginning {
  std::string_view line;
  std::string_view source;
  bool is_whole = false;  ///< of the line
};
constexpr Beginning kBeginnings[] = {
    {"hca_id:", "ibv_devinfo -v"},
    {"Hardware Port:", "networksetup -listallhardwareports"},
    {"ProductName:", "sw_vers"},
    {"ProductVersion:", "sw_vers"},
    {"System-wide power settings", "pmset -g"},
    {"Currently in use:", "pmset -g"},
    {"enabled", "rdma_ctl status", true},
    {"disabled", "rdma_ctl status", true},
};

/// Which program's output begins with this line; empty: it goes on with the one before.
std::string_view source_of(std::string_view line) {
  if (line.find(": flags=") != std::string_view::npos && !line.starts_with(' ') && !line.starts_with('\t')) {
    return "ifconfig -a";
  }
  if (line.starts_with("Thunderbolt") && line.ends_with(':')) {  // "Thunderbolt/USB4:"
    return "system_profiler SPThunderboltDataType";
  }
  const auto found = std::ranges::find_if(
      kBeginnings, [&](const Beginning& one) { return one.is_whole ? line == one.line : line.starts_with(one.line); });
  return found == std::end(kBeginnings) ? "" : found->source;
}

Recording load_text(const std::string& text, const std::string& host) {
  return text.find(kFirstLine) != std::string::npos ? parse_recording(text, host) : parse_pasted(text, host);
}

void add_folder(Recording& to, const fs::path& folder, const std::string& host, int depth) {
  for (const std::string& name : cluster::names_in(folder.string())) {
    const fs::path path = folder / name;
    const std::string whose = host.empty() ? name.substr(0, name.find('.')) : host;
    if (name.starts_with('.') || !cluster::is_host(whose)) {
      continue;
    }
    if (fs::is_directory(path) && depth == 0) {
      add_folder(to, path, whose, depth + 1);
    } else if (fs::is_regular_file(path)) {
      to.put_all(load_text(cluster::read_file(path.string(), kMostBytes), whose));
    }
  }
}

}  // namespace

const Reading* Recording::find(std::string_view host, std::string_view source) const {
  const auto found = std::find_if(readings.rbegin(), readings.rend(),
                                  [&](const Reading& one) { return one.host == host && one.source == source; });
  return found == readings.rend() ? nullptr : &*found;
}

void Recording::put(Reading reading) {
  Reading& one = at(reading.host, reading.source);
  one = std::move(reading);
}

Reading& Recording::at(std::string_view host, std::string_view source) {
  const Reading* found = find(host, source);
  return found != nullptr ? readings[static_cast<size_t>(found - readings.data())]
                          : readings.emplace_back(Reading{std::string(host), std::string(source)});
}

void Recording::put_all(Recording other) {
  for (Reading& one : other.readings) {
    put(std::move(one));
  }
}

std::vector<std::string> Recording::hosts() const {
  std::vector<std::string> names;
  for (const Reading& one : readings) {
    if (one.host != kNoHost && std::ranges::find(names, one.host) == names.end()) {
      names.push_back(one.host);
    }
  }
  return names;
}

Recording parse_recording(std::string_view text, const std::string& host) {
  Recording recording;
  Reading* now = nullptr;
  for (const std::string_view line : lines_without_ends(text)) {
    if (line.starts_with("== ")) {
      now = begin_reading(recording, line.substr(3), host);
    } else if (line.starts_with("!! ")) {
      const size_t colon = std::min(line.find(": "), line.size());
      if (Reading* failed = begin_reading(recording, line.substr(3, colon - 3), host)) {
        failed->problem = colon == line.size() ? "could not be read" : line.substr(colon + 2);
      }
      now = nullptr;
    } else if (now != nullptr && !(line.empty() && now->text.empty())) {
      const bool is_escaped = line.starts_with(" == ") || line.starts_with(" !! ");
      now->text.append(line.substr(is_escaped ? 1 : 0)).append("\n");
    }
  }
  return recording;
}

std::string emit_recording(const Recording& recording) {
  std::string text = fmt::format("{}\n", kFirstLine);
  for (const Reading& one : recording.readings) {
    if (!one.problem.empty()) {
      text += fmt::format("!! {} {}: {}\n", one.host, one.source, one.problem);
      continue;
    }
    text += fmt::format("== {} {}\n", one.host, one.source);
    for (const std::string_view line : lines_without_ends(one.text)) {
      const bool needs_space = line.starts_with("== ") || line.starts_with("!! ");
      text.append(needs_space ? " " : "").append(line).append("\n");
    }
  }
  return text;
}

Recording parse_pasted(std::string_view text, const std::string& host) {
  Recording recording;
  Reading* now = nullptr;
  for (const std::string_view line : lines_without_ends(text)) {
    if (const std::string_view source = source_of(line); !source.empty()) {
      now = &recording.at(host, source);
    }
    if (now != nullptr) {
      now->text.append(line).append("\n");
    }
  }
  if (!recording.readings.empty()) {
    recording.readings.push_back({host, "uname", "Darwin\n"});  // the tools of other systems have other outputs
  }
  return recording;
}

Recording load_recording(const std::string& path) {
  Recording recording;
  if (path == "-") {
    recording = load_text(read_input(stdin, kMostBytes), "this");
  } else if (fs::is_directory(path)) {
    add_folder(recording, path, "", 0);
  } else {
    const std::string name = fs::path(path).filename().string();
    const std::string host = name.substr(0, name.find('.'));
    recording = load_text(cluster::read_file(path, kMostBytes), cluster::is_host(host) ? host : "this");
  }
  if (recording.hosts().empty()) {
    throw UsageError(
        fmt::format("{}: holds neither a recording (ringbolt doctor --bundle, --script) nor the output of "
                    "system_profiler, ifconfig, ibv_devinfo, networksetup, sw_vers, pmset or rdma_ctl",
                    path));
  }
  return recording;
}

}  // namespace ringbolt::tools::doctor
