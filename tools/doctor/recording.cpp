#include "doctor/recording.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "cluster/cabling.h"
#include "cluster/read_file.h"
#include "failure.h"

namespace ringbolt::tools::doctor {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = size_t{64} << 20U;
constexpr std::string_view kFirstLine = "ringbolt-recording 1";

/// The next line of `rest`, without its end.
std::string_view take_line(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

/// "HOST SOURCE" of a header line; the host "." is `host`.
std::optional<Reading> header_of(std::string_view words, const std::string& host) {
  const size_t space = words.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == words.size()) {
    return std::nullopt;
  }
  const std::string name(words.substr(0, space));
  return Reading{name == "." ? host : name, std::string(words.substr(space + 1))};
}

/// Which program's output begins with this line; empty: it goes on with the one before.
std::string_view source_of(std::string_view line, std::string_view now) {
  if (line.starts_with("hca_id:")) {
    return "ibv_devinfo -v";
  }
  if (line.find(": flags=") != std::string_view::npos && !line.starts_with(' ') && !line.starts_with('\t')) {
    return "ifconfig -a";
  }
  if (line.starts_with("Hardware Port:")) {
    return "networksetup -listallhardwareports";
  }
  if (line.starts_with("ProductName:") || (line.starts_with("ProductVersion:") && now != "sw_vers")) {
    return "sw_vers";
  }
  if (line.starts_with("Thunderbolt") && line.ends_with(':')) {
    return "system_profiler SPThunderboltDataType";
  }
  if (line.starts_with("System-wide power settings") || line.starts_with("Currently in use:")) {
    return "pmset -g";
  }
  if (line == "enabled" || line == "disabled") {
    return "rdma_ctl status";
  }
  return "";
}

Recording load_text(const std::string& text, const std::string& host) {
  return text.find(kFirstLine) != std::string::npos ? parse_recording(text, host) : parse_pasted(text, host);
}

std::string standard_input() {
  std::string text;
  char buffer[65536];
  for (size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, stdin)) > 0 && text.size() < kMostBytes;) {
    text.append(buffer, got);
  }
  return text;
}

void add_all(Recording& to, Recording from) {
  for (Reading& one : from.readings) {
    to.put(std::move(one));
  }
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
      add_all(to, load_text(cluster::read_file(path.string(), kMostBytes), whose));
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
  for (Reading& one : readings) {
    if (one.host == reading.host && one.source == reading.source) {
      one = std::move(reading);
      return;
    }
  }
  readings.push_back(std::move(reading));
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
  std::optional<Reading> now;
  const auto close = [&] {
    if (now) {
      recording.put(std::move(*now));
      now.reset();
    }
  };
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.starts_with("== ")) {
      close();
      now = header_of(line.substr(3), host);
    } else if (line.starts_with("!! ")) {
      close();
      const size_t colon = line.rfind(": ", std::min(line.find(": "), line.size()));
      if (auto failed = header_of(line.substr(3, std::min(colon, line.size()) - 3), host)) {
        failed->problem = colon == std::string_view::npos ? "could not be read" : std::string(line.substr(colon + 2));
        recording.put(std::move(*failed));
      }
    } else if (now && !(line.empty() && now->text.empty())) {
      const bool is_escaped = line.starts_with(" == ") || line.starts_with(" !! ");
      now->text.append(line.substr(is_escaped ? 1 : 0)).append("\n");
    }
  }
  close();
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
    for (std::string_view rest = one.text; !rest.empty();) {
      const std::string_view line = take_line(rest);
      const bool needs_space = line.starts_with("== ") || line.starts_with("!! ");
      text.append(needs_space ? " " : "").append(line).append("\n");
    }
  }
  return text;
}

Recording parse_pasted(std::string_view text, const std::string& host) {
  Recording recording;
  Reading* now = nullptr;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::string_view source = source_of(line, now == nullptr ? "" : now->source);
    if (!source.empty() && (now == nullptr || now->source != source)) {
      if (recording.find(host, source) == nullptr) {
        recording.readings.push_back({host, std::string(source)});
      }
      now = const_cast<Reading*>(recording.find(host, source));
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
    recording = load_text(standard_input(), "this");
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
