#include "options.h"

#include <fmt/format.h>
#include <sched.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <stdexcept>

namespace ringbolt::bench {

Options parse_options(int argc, char** argv) {
  std::map<std::string, std::string> given;
  for (int i = 1; i + 1 < argc; i += 2) {
    given[argv[i]] = argv[i + 1];
  }
  const auto take = [&given](const char* name, const char* fallback) {
    const auto found = given.find(name);
    if (found == given.end() && fallback == nullptr) {
      throw std::runtime_error(fmt::format("{} is missing; bench/compare/compare.py starts this program", name));
    }
    std::string value = found == given.end() ? fallback : found->second;
    given.erase(name);
    return value;
  };
  Options options;
  options.control = take("--control", nullptr);
  options.page = take("--page", nullptr);
  options.rank = static_cast<unsigned>(std::stoul(take("--rank", "0")));
  options.ranks = static_cast<unsigned>(std::stoul(take("--ranks", "2")));
  options.memory = take("--memory", "shared") == "private" ? Memory::kPrivate : Memory::kShared;
  options.may_have_threads = take("--threads", "one") == "many";
  if (!given.empty()) {
    throw std::runtime_error(fmt::format("unknown option {}", given.begin()->first));
  }
  return options;
}

void pin_to_core_of(unsigned rank) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(rank % 2, &cores);
  if (sched_setaffinity(0, sizeof cores, &cores) != 0) {
    throw std::runtime_error(fmt::format("rank {}: core {}: sched_setaffinity: {}; the comparison needs cores 0 and 1",
                                         rank, rank % 2, std::strerror(errno)));
  }
}

}  // namespace ringbolt::bench
