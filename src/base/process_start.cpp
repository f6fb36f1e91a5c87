#include "base/process_start.h"

#include <signal.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <string>

namespace ringbolt::base {

uint64_t process_start(pid_t pid) {
  // proc_pid_stat(5). Read anew each time: a pid may have passed to another process.
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  // The second field is a name in parentheses that may hold anything; the start is the 22nd.
  constexpr int kFieldsAfterName = 20;
  size_t at = text.rfind(')');
  for (int i = 0; i < kFieldsAfterName && at != std::string::npos; ++i) {
    at = text.find(' ', at + 1);
  }
  uint64_t start = 0;
  if (at != std::string::npos) {
    std::from_chars(text.data() + at + 1, text.data() + text.size(), start);
  }
  return start;
}

bool is_same_process(pid_t pid, uint64_t start) {
  // EPERM means that there is one, of another user.
  if (kill(pid, 0) != 0 && errno == ESRCH) {
    return false;
  }
  const uint64_t now = process_start(pid);
  return now == 0 || start == 0 || now == start;
}

}  // namespace ringbolt::base
