// What the device costs while nothing happens: time to open it, memory of idle queue pairs, shared memory of a
// connected pair, processor time of a program that sleeps. Exit code 1 when a limit is broken.
//   bench_footprint [--json]
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "loop_device.h"
#include "memory_use.h"

extern char** environ;

namespace ringbolt::bench {
namespace {

constexpr int kOpens = 31;
constexpr unsigned kQueuePairs = 400;
constexpr double kOpenLimitMs = 10;
constexpr double kQueuePairLimitKib = 64;
constexpr double kSegmentLimitKib = 512;
constexpr double kIdleLimitMs = 10;
constexpr auto kIdleTime = std::chrono::seconds(2);

struct Measure {
  std::string name;
  std::string unit;
  double value = 0;
  double limit = 0;  ///< 0: none, only reported
  bool holds() const { return limit == 0 || value <= limit; }
};

double milliseconds_to_open() {
  const auto start = std::chrono::steady_clock::now();
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  ibv_context* context = list == nullptr || count == 0 ? nullptr : ibv_open_device(list[0]);
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  if (context == nullptr) {
    throw std::runtime_error("no verbs device; put build/.../lib/ringbolt first in LD_LIBRARY_PATH");
  }
  ibv_close_device(context);
  ibv_free_device_list(list);
  return taken.count();
}

/// Runs this program anew with --open and returns what it printed.
double milliseconds_in_fresh_process() {
  int ends[2];
  if (pipe(ends) != 0) {
    throw std::runtime_error(fmt::format("pipe: {}", std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  char self[] = "/proc/self/exe";
  char mode[] = "--open";
  char* arguments[] = {self, mode, nullptr};
  pid_t child = 0;
  const int error = posix_spawn(&child, self, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    throw std::runtime_error(fmt::format("posix_spawn: {}", std::strerror(error)));
  }
  std::string text(64, '\0');
  const ssize_t length = read(ends[0], text.data(), text.size());
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0 || length <= 0) {
    throw std::runtime_error(fmt::format("a fresh process could not open the device (status {})", status));
  }
  return std::stod(text);
}

Measure time_to_open() {
  std::vector<double> times;
  for (int i = 0; i < kOpens; ++i) {
    times.push_back(milliseconds_in_fresh_process());
  }
  std::nth_element(times.begin(), times.begin() + kOpens / 2, times.end());
  return {fmt::format("list and open the device, median of {} fresh processes", kOpens), "ms", times[kOpens / 2],
          kOpenLimitMs};
}

std::vector<Measure> memory_of_queue_pairs() {
  const LoopDevice device;
  std::vector<QueuePair> pairs;
  const auto add_pairs = [&](unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      pairs.push_back(device.make_queue_pair());
    }
  };
  // A first connected pair pays for what the process needs once.
  add_pairs(2);
  device.connect(*pairs[0], *pairs[1]);
  device.exchange(*pairs[0], *pairs[1], 4);

  const auto per_queue_pair_kib = [](int64_t bytes) { return static_cast<double>(bytes) / 1024 / kQueuePairs; };
  const int64_t before = resident_bytes();
  add_pairs(kQueuePairs);
  const int64_t created = resident_bytes();
  const auto segments_before = mapped_segments();
  for (unsigned i = 2; i < pairs.size(); i += 2) {
    device.connect(*pairs[i], *pairs[i + 1]);
  }
  for (unsigned i = 2; i < pairs.size(); i += 2) {
    device.exchange(*pairs[i], *pairs[i + 1], 1);
    device.exchange(*pairs[i + 1], *pairs[i], 1);
  }
  const int64_t connected = resident_bytes();
  uint64_t segment_bytes = 0;
  for (const auto& [inode, bytes] : mapped_segments()) {
    segment_bytes += segments_before.contains(inode) ? 0 : bytes;
  }
  const double segment_kib = static_cast<double>(segment_bytes) / 1024 / (kQueuePairs / 2.0);
  return {
      {"idle queue pair (128 sends, 128 receives), resident", "KiB", per_queue_pair_kib(created - before),
       kQueuePairLimitKib},
      {"the same, connected and once used, resident", "KiB", per_queue_pair_kib(connected - before),
       kQueuePairLimitKib},
      {"shared memory of a connected pair, mapped", "KiB", segment_kib, kSegmentLimitKib},
  };
}

Measure idle_time() {
  const LoopDevice device;
  const QueuePair one = device.make_queue_pair();
  const QueuePair other = device.make_queue_pair();
  device.connect(*one, *other);
  device.exchange(*one, *other, 4);
  if (ibv_req_notify_cq(device.cq(), 0) != 0) {
    throw std::runtime_error("ibv_req_notify_cq failed");
  }
  std::thread sleeper([&device] {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(device.channel(), &cq, &context) == 0) {
      ibv_ack_cq_events(cq, 1);
    }
  });
  const int64_t before = cpu_time_us();
  std::this_thread::sleep_for(kIdleTime);  // the measured interval itself
  const int64_t used = cpu_time_us() - before;
  device.post_message(*one, *other);  // wakes the sleeper
  sleeper.join();
  return {"processor time of 2 s asleep with an open connection and an armed CQ", "ms",
          static_cast<double>(used) / 1000, kIdleLimitMs};
}

int report(const std::vector<Measure>& measures, bool as_json) {
  bool all_hold = true;
  std::string json;
  for (const Measure& measure : measures) {
    all_hold = all_hold && measure.holds();
    json += fmt::format("{}\n {{\"name\": \"{}\", \"unit\": \"{}\", \"value\": {:.3f}, \"limit\": {}, \"holds\": {}}}",
                        json.empty() ? "" : ",", measure.name, measure.unit, measure.value, measure.limit,
                        measure.holds());
    if (!as_json) {
      fmt::print("{:<72} {:>9.3f} {:<4} limit {:>4} {}\n", measure.name, measure.value, measure.unit, measure.limit,
                 measure.holds() ? "holds" : "BROKEN");
    }
  }
  if (as_json) {
    fmt::print("[{}\n]\n", json);
  }
  return all_hold ? 0 : 1;
}

int measure_all(bool as_json) {
  std::vector<Measure> measures{time_to_open()};
  std::ranges::copy(memory_of_queue_pairs(), std::back_inserter(measures));
  measures.push_back(idle_time());
  return report(measures, as_json);
}

/// A runtime folder of our own, gone when we are.
class RuntimeFolder {
 public:
  RuntimeFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rbfoot-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error(fmt::format("{}: mkdtemp: {}", name, std::strerror(errno)));
    }
    path_ = name;
    setenv("RINGBOLT_RUNTIME_DIR", name.c_str(), 1);
  }
  ~RuntimeFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  RuntimeFolder(const RuntimeFolder&) = delete;
  RuntimeFolder& operator=(const RuntimeFolder&) = delete;

 private:
  std::filesystem::path path_;
};

}  // namespace
}  // namespace ringbolt::bench

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  try {
    if (mode == "--open") {
      fmt::print("{}\n", ringbolt::bench::milliseconds_to_open());
      return 0;
    }
    if (!mode.empty() && mode != "--json") {
      fmt::print(stderr, "usage: {} [--json]\n", argv[0]);
      return 2;
    }
    const ringbolt::bench::RuntimeFolder folder;
    return ringbolt::bench::measure_all(mode == "--json");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return 2;
  }
}
