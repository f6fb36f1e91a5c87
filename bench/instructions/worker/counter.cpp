#include "counter.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace ringbolt::bench {
namespace {

constexpr uint64_t kCalibrations = 100;

/// A counter of this thread alone that is off; -1 where there is none.
int open_event(uint32_t type, uint64_t config, bool counts_kernel) {
  perf_event_attr wanted{};
  wanted.type = type;
  wanted.size = sizeof wanted;
  wanted.config = config;
  wanted.disabled = 1;
  wanted.exclude_kernel = counts_kernel ? 0 : 1;
  wanted.exclude_hv = 1;
  return static_cast<int>(syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

int open_call_counter() {
  std::ifstream file("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id");
  uint64_t id = 0;
  return file >> id ? open_event(PERF_TYPE_TRACEPOINT, id, true) : -1;
}

/// What was counted since the last time, as text.
std::string take(int event) {
  uint64_t counted = 0;
  if (event < 0 || read(event, &counted, sizeof counted) != sizeof counted) {
    return "-";
  }
  ioctl(event, PERF_EVENT_IOC_RESET, 0);
  return std::to_string(counted);
}

}  // namespace

InstructionCounter::InstructionCounter() {
  if (RUNNING_ON_VALGRIND == 0) {
    instructions_ = open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false);
    calls_ = open_call_counter();
  }
}

InstructionCounter::~InstructionCounter() {
  for (const int event : {instructions_, calls_}) {
    if (event >= 0) {
      close(event);
    }
  }
}

void InstructionCounter::report(const std::string& name, uint64_t operations, uint64_t polls) {
  CALLGRIND_DUMP_STATS_AT(name.c_str());
  std::printf("series %s %lu %lu %lu %s %s\n", name.c_str(), operations, starts_, polls, take(instructions_).c_str(),
              take(calls_).c_str());
  std::fflush(stdout);
  starts_ = 0;
}

void InstructionCounter::calibrate() {
  for (uint64_t i = 0; i < kCalibrations; ++i) {
    measure([] {});
  }
  report("nothing", kCalibrations);
}

Order parse_order(int argc, char** argv) {
  Order order;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--kinds") {
      std::istringstream words(argv[i + 1]);
      for (std::string kind; std::getline(words, kind, ',');) {
        order.kinds.push_back(kind);
      }
    } else if (option == "--operations") {
      order.operations = std::stoull(argv[i + 1]);
    } else if (option == "--page") {
      order.page = argv[i + 1];
    } else {
      throw std::runtime_error(
          fmt::format("unknown option {}; bench/instructions/instructions.py starts this program", option));
    }
  }
  return order;
}

void run_kinds(const Order& order, const std::map<std::string, Kind>& kinds) {
  InstructionCounter counter;
  counter.calibrate();
  for (const std::string& name : order.kinds) {
    const auto found = kinds.find(name);
    if (found == kinds.end()) {
      throw std::runtime_error(fmt::format("no kind {}", name));
    }
    found->second(counter, order.operations);
  }
}

int run_kinds(int argc, char** argv, const std::map<std::string, Kind>& kinds) try {
  run_kinds(parse_order(argc, argv), kinds);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return 2;
}

}  // namespace ringbolt::bench
