#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringbolt::tools::doctor {

/// What one source of one machine said, or why it could not be asked.
struct Reading {
  std::string host;          ///< kNoHost: of no machine, as the plan is
  std::string source;        ///< a command line, or the name of a part of look.sh
  std::string text = {};     ///< lines, each with its end
  std::string problem = {};  ///< not empty: it could not be read
  friend bool operator==(const Reading&, const Reading&) = default;
};

inline constexpr const char* kNoHost = "-";

/// All that is known of some machines: what every check judges, and nothing else. A value.
struct Recording {
  std::vector<Reading> readings;

  /// Null if there is none.
  const Reading* find(std::string_view host, std::string_view source) const;
  /// In the place of the one of that host and source, if there is one.
  void put(Reading reading);
  void put_all(Recording other);
  /// It is made if it is not there. The reference lives until the next reading is made. Looks through all of them.
  Reading& at(std::string_view host, std::string_view source);
  /// Names of machines, each once, in the order in which they come.
  std::vector<std::string> hosts() const;
  friend bool operator==(const Recording&, const Recording&) = default;
};

/// Reads what emit_recording() and look.sh write: `== HOST SOURCE` begins a section of lines, `!! HOST SOURCE: WHY`
/// says that there is none. The host "." is `host`. Any bytes are safe: what stands before the first header is passed
/// over.
Recording parse_recording(std::string_view text, const std::string& host);

/// The text that parse_recording() reads.
std::string emit_recording(const Recording& recording);

/// What people paste: the outputs of system_profiler, ifconfig, ibv_devinfo, networksetup, sw_vers, pmset, rdma_ctl in
/// any order, told apart by how they begin. Any bytes are safe.
Recording parse_pasted(std::string_view text, const std::string& host);

/// A file, a folder or "-" for standard input. A folder holds a file or folder for each machine, HOST.anything or
/// HOST/anything. Each file is a recording, or pasted. Throws UsageError or base::Error.
Recording load_recording(const std::string& path);

}  // namespace ringbolt::tools::doctor
