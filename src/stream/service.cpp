#include "stream/service.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/start_thread.h"
#include "stream/stream.h"

namespace ringbolt::stream {
namespace {

/// Whether this kernel has a connection manager and a device with an active port.
bool has_kernel_device() {
  namespace fs = std::filesystem;
  std::error_code error;
  if (::access("/dev/infiniband/rdma_cm", R_OK | W_OK) != 0) {
    return false;
  }
  for (const auto& device : fs::directory_iterator("/sys/class/infiniband", error)) {
    std::error_code none;
    for (const auto& port : fs::directory_iterator(device.path() / "ports", none)) {
      std::string state;
      std::getline(std::ifstream(port.path() / "state"), state);
      if (state.find("ACTIVE") != std::string::npos) {
        return true;
      }
    }
  }
  return false;
}

/// "auto" is decided without loading the system's library: both have one name for the loader, and the connection
/// manager of ours would then work on the system's.
std::string chosen_verbs(const std::string& said) {
  const char* variable = std::getenv("RINGBOLT_VERBS");
  const std::string choice = !said.empty() ? said : variable == nullptr ? "" : variable;
  if (choice.empty() || choice == "auto") {
    return has_kernel_device() ? "system" : "soft";
  }
  return choice;
}

/// Between two streams: then the next one has its turn, whoever waits.
constexpr int kMostYields = 100;

/// Counts as one who waits until it ends.
class Waiting {
 public:
  explicit Waiting(std::atomic<uint32_t>& count) : count_(count) { count_.fetch_add(1, std::memory_order_relaxed); }
  ~Waiting() { count_.fetch_sub(1, std::memory_order_relaxed); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  std::atomic<uint32_t>& count_;
};

}  // namespace

CloseCounts CloseTally::counts() const {
  CloseCounts all{};
  std::ranges::transform(counts_, all.begin(), [](const auto& one) { return one.load(std::memory_order_relaxed); });
  return all;
}

Keeper::Keeper(uint32_t interval_ms) : interval_ms_(std::max(1U, interval_ms)) {
  thread_ = base::start_thread([this] { run(); });
}

Keeper::~Keeper() {
  {
    const base::LockGuard lock(mutex_);
    stops_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

uint64_t Keeper::add(Stream& stream) {
  const Waiting waiting(waiting_);
  const base::LockGuard lock(mutex_);
  streams_.emplace(++last_key_, &stream);
  if (streams_.size() == 1) {
    changed_.notify_all();
  }
  return last_key_;
}

void Keeper::remove(uint64_t key) {
  const Waiting waiting(waiting_);
  const base::LockGuard lock(mutex_);
  streams_.erase(key);
}

void Keeper::run() {
  while (true) {
    {
      const base::LockGuard lock(mutex_);
      if (streams_.empty()) {
        changed_.wait(mutex_, [this]() RINGBOLT_REQUIRES(mutex_) { return stops_ || !streams_.empty(); });
      }
      // Also before the first look: a stream that has just begun is in its program's hands.
      changed_.wait_for(mutex_, std::chrono::milliseconds(interval_ms_),
                        [this]() RINGBOLT_REQUIRES(mutex_) { return stops_; });
      if (stops_) {
        return;
      }
    }
    // One at a time, so that nobody who opens or closes a stream waits for more than one.
    for (uint64_t key = 0; look_after_next(key);) {
      // A mutex goes to whoever asks first: with hundreds of streams that would be this thread, again and again.
      for (int i = 0; i < kMostYields && waiting_.load(std::memory_order_relaxed) != 0; ++i) {
        std::this_thread::yield();
      }
    }
  }
}

bool Keeper::look_after_next(uint64_t& key) {
  const base::LockGuard lock(mutex_);
  const auto next = streams_.upper_bound(key);
  if (stops_ || next == streams_.end()) {
    return false;
  }
  key = next->first;
  next->second->look_after();
  return true;
}

Service::Service(const ServiceSettings& settings)
    : manager_(verbs::ConnectionManager::open(verbs::Library::open(chosen_verbs(settings.verbs)))),
      budget_(settings.memory_budget_bytes),
      keeper_(settings.service_interval_ms) {}

}  // namespace ringbolt::stream
