#pragma once

#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_TOGGLE_COLLECT
#define CALLGRIND_DUMP_STATS_AT(text) static_cast<void>(text)
#define RUNNING_ON_VALGRIND 0
#endif

namespace ringbolt::bench {

/// Counts the instructions in user space that the calling thread executes between start() and stop(): callgrind does
/// where the program runs under it (`valgrind --tool=callgrind --collect-atstart=no`), else the processor where the
/// kernel lets us use its counter. Likewise its system calls, by the kernel's tracepoint, but not under callgrind. What
/// other threads of the process do counts nowhere. Not thread-safe.
class InstructionCounter {
 public:
  InstructionCounter();
  ~InstructionCounter();
  InstructionCounter(const InstructionCounter&) = delete;
  InstructionCounter& operator=(const InstructionCounter&) = delete;

  // Inline, and the requests to callgrind innermost: what lies between them and the operation is counted with it.
  void start() {
    ++starts_;
    set(calls_, PERF_EVENT_IOC_ENABLE);
    set(instructions_, PERF_EVENT_IOC_ENABLE);
    CALLGRIND_TOGGLE_COLLECT;
  }
  void stop() {
    CALLGRIND_TOGGLE_COLLECT;
    set(instructions_, PERF_EVENT_IOC_DISABLE);
    set(calls_, PERF_EVENT_IOC_DISABLE);
  }
  template <class Call>
  void measure(Call call) {
    start();
    call();
    stop();
  }

  /// Ends a series: prints "series NAME OPERATIONS STARTS POLLS INSTRUCTIONS CALLS" and begins the next one. Where
  /// nobody counts stands "-"; of instructions also where callgrind does, whose dump of that name holds them. `polls`
  /// is what the series took to find its completions.
  void report(const std::string& name, uint64_t operations, uint64_t polls = 0);
  /// A series of nothing but start() and stop(): what they count themselves.
  void calibrate();

 private:
  static void set(int event, unsigned long state) {
    if (event >= 0) {
      ioctl(event, state, 0);
    }
  }

  int instructions_ = -1;
  int calls_ = -1;
  uint64_t starts_ = 0;
};

/// What a kind does with the counter, for so many operations.
using Kind = std::function<void(InstructionCounter&, uint64_t operations)>;

/// What the command line says: `PROGRAM --kinds A,B --operations N [--page PATH]`.
struct Order {
  std::vector<std::string> kinds;
  uint64_t operations = 1000;
  std::string page;  ///< of a program that is two processes, see early_peer.h
};

/// Throws std::runtime_error.
Order parse_order(int argc, char** argv);
/// Runs those of `kinds` that the order names, one after the other. Throws std::runtime_error.
void run_kinds(const Order& order, const std::map<std::string, Kind>& kinds);
/// The same as a whole program: prints what goes wrong, and returns the exit status.
int run_kinds(int argc, char** argv, const std::map<std::string, Kind>& kinds);

}  // namespace ringbolt::bench
