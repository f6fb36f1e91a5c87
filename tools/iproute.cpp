#include "iproute.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "child_process.h"
#include "failure.h"
#include "node_environment.h"

namespace ringbolt::tools {
namespace {

constexpr double kIpPatienceS = 60;

/// The tools say "Command failed -:3"; people want the third line.
std::string failed_line(const std::string& script, const std::string& said) {
  constexpr std::string_view kMark = "Command failed -:";
  const size_t at = said.find(kMark);
  size_t number = 0;
  if (at == std::string::npos ||
      std::from_chars(said.data() + at + kMark.size(), said.data() + said.size(), number).ec != std::errc{}) {
    return "";
  }
  size_t begin = 0;
  for (size_t line = 1; line < number && begin != std::string::npos; ++line) {
    begin = script.find('\n', begin);
    begin = begin == std::string::npos ? begin : begin + 1;
  }
  return begin == std::string::npos ? "" : script.substr(begin, script.find('\n', begin) - begin);
}

}  // namespace

std::string find_program(const std::string& program, const std::string& package) {
  const char* variable = std::getenv("PATH");
  std::string folders = variable == nullptr ? "" : variable;
  folders += ":/usr/sbin:/sbin:/usr/bin:/bin";
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string path = folders.substr(begin, end - begin) + "/" + program;
    if (end > begin && ::access(path.c_str(), X_OK) == 0) {
      return path;
    }
    begin = end + 1;
  }
  throw UsageError(fmt::format("{} is not installed; install it (Debian: apt install {})", program, package));
}

void run_iproute(std::vector<std::string> words, const std::string& script, OnFailure on_failure) {
  if (script.empty()) {
    return;
  }
  const std::string shown = fmt::format("{}", fmt::join(words, " "));
  words.front() = find_program(words.front(), "iproute2");
  if (on_failure == OnFailure::go_on) {
    words.insert(words.begin() + 1, "-force");
  }
  words.insert(words.end(), {"-batch", "-"});
  Launch launch;
  launch.command = std::move(words);
  launch.environment = merged_environment({});
  const Captured result = run_captured(std::move(launch), script, kIpPatienceS);
  if (result.is_late) {
    throw UsageError(
        fmt::format("{}: not done after {} s; look at the machine's load, then try again", shown, kIpPatienceS));
  }
  if (result.exit_code != 0 && on_failure == OnFailure::stop) {
    throw UsageError(
        fmt::format("{} {}: {}", shown, failed_line(script, result.error_output), one_line(result.error_output)));
  }
}

}  // namespace ringbolt::tools
