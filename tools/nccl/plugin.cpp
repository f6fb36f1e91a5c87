#include "nccl/plugin.h"

#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/lock_guard.h"
#include "base/mutex.h"
#include "failure.h"
#include "node_environment.h"
#include "pattern.h"

namespace ringbolt::tools::nccl_command {
namespace {

/// What went wrong last, in the plugin's words: a number is all that its calls return. Its own threads say some of it.
/// Never destroyed: they may do so until the process ends.
struct LastWarning {
  base::Mutex mutex;
  std::string words RINGBOLT_GUARDED_BY(mutex);
};
LastWarning& last_warning() {
  static auto* const last = new LastWarning;
  return *last;
}

void log(int level, unsigned long, const char*, int, const char* format, ...) {
  constexpr int kWarn = 2;
  if (level != kWarn) {
    return;
  }
  std::array<char, 600> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  const base::LockGuard guard(last_warning().mutex);
  last_warning().words = text.data();
}

void check(int result, const char* call) {
  if (result != 0) {
    const base::LockGuard guard(last_warning().mutex);
    throw FoundProblem(
        fmt::format("{} of the plugin returned {} (ncclResult_t): {}", call, result, last_warning().words));
  }
}

constexpr uint32_t kDepth = 8;  // messages that NCCL has under way on a connection
constexpr uint64_t kMostWaitNs = 30'000'000'000;
constexpr uint64_t kBytesPerFigure = uint64_t{32} << 20U;

uint32_t rounds_of(uint64_t size) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(kBytesPerFigure / std::max<uint64_t>(size, 1), 16, 400));
}

/// Of what a rank sends as message `message` of those under way.
uint32_t pattern_of(uint32_t sender, uint32_t message) { return sender * kDepth + message; }

/// Asks until it is there, which a peer that is gone never lets it be.
template <class Ask>
auto insist(const Pair& pair, const char* what, Ask ask) {
  const uint64_t deadline_ns = base::now_ns() + kMostWaitNs;
  auto answer = ask();
  for (uint32_t n = 1; !answer; answer = ask(), ++n) {
    if (n % 64 == 0) {
      ::sched_yield();  // as NCCL's thread does: there may be more ranks than processors
    }
    if (n % 1024 == 0 && base::now_ns() > deadline_ns) {
      throw FoundProblem(fmt::format("rank {}: {} rank {} was not over within {} s", pair.rank, what, pair.other,
                                     kMostWaitNs / 1'000'000'000));
    }
  }
  return answer;
}

void send_one(const Pair& pair, std::vector<std::byte>& bytes) {
  void* const request =
      insist(pair, "a send to", [&] { return pair.plugin.send(pair.send_comm, bytes.data(), bytes.size()); });
  int size = 0;
  insist(pair, "a send to", [&] { return pair.plugin.test(request, size); });
}

/// How many bytes came.
size_t receive_one(const Pair& pair, std::vector<std::byte>& bytes) {
  void* const request = insist(pair, "a receive from",
                               [&] { return pair.plugin.receive(pair.receive_comm, bytes.data(), bytes.size()); });
  int size = 0;
  insist(pair, "a receive from", [&] { return pair.plugin.test(request, size); });
  return static_cast<size_t>(size);
}

/// Half the mean round trip, at the sender, which tells the receiver.
double measure_time(const Pair& pair, bool sends, std::vector<std::byte>& bytes) {
  const uint32_t rounds = std::min(rounds_of(bytes.size()), 200U);
  uint64_t begin_ns = 0;
  for (uint32_t i = 0; i < rounds + rounds / 8; ++i) {
    if (i == rounds / 8) {
      begin_ns = base::now_ns();
    }
    if (sends) {
      send_one(pair, bytes);
      (void)receive_one(pair, bytes);
    } else {
      (void)receive_one(pair, bytes);
      send_one(pair, bytes);
    }
  }
  return static_cast<double>(base::now_ns() - begin_ns) / rounds / 2 / 1000;
}

/// Eight at a time. At the receiver: bytes a second that came and were compared, and how many messages were not right.
void measure_rate(const Pair& pair, bool sends, uint64_t size, Figure& figure) {
  const uint32_t n_messages = rounds_of(size);
  std::array<std::vector<std::byte>, kDepth> buffers;
  std::array<void*, kDepth> requests{};
  const uint32_t sender = sends ? pair.rank : pair.other;
  for (uint32_t i = 0; i < kDepth; ++i) {
    buffers[i].resize(size);
    if (sends) {
      fill_pattern(buffers[i], pattern_of(sender, i));
    }
  }
  const uint64_t begin_ns = base::now_ns();
  for (uint32_t i = 0; i < n_messages + kDepth; ++i) {
    std::vector<std::byte>& buffer = buffers[i % kDepth];
    if (i >= kDepth) {
      int length = 0;
      insist(pair, sends ? "a send to" : "a receive from",
             [&] { return pair.plugin.test(requests[i % kDepth], length); });
      const bool is_right =
          sends || (static_cast<uint64_t>(length) == size && !find_mismatch(buffer, pattern_of(sender, i % kDepth)));
      figure.n_wrong += is_right ? 0 : 1;
    }
    if (i < n_messages) {
      requests[i % kDepth] = insist(pair, sends ? "a send to" : "a receive from", [&] {
        return sends ? pair.plugin.send(pair.send_comm, buffer.data(), size)
                     : pair.plugin.receive(pair.receive_comm, buffer.data(), size);
      });
    }
  }
  figure.gb_per_s = static_cast<double>(size) * n_messages / static_cast<double>(base::now_ns() - begin_ns);
}

}  // namespace

Plugin::Plugin(const std::string& path) {
  void* const object = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  table_ = object == nullptr ? nullptr : static_cast<const nccl::abi::NetV11*>(::dlsym(object, "ncclNetPlugin_v11"));
  if (table_ == nullptr) {
    throw FoundProblem(::dlerror());
  }
  check(table_->init(&context_, 1, nullptr, log, nullptr), "init");
}

Plugin::~Plugin() { (void)table_->finalize(context_); }

void* Plugin::listen(Handle& handle) {
  void* listener = nullptr;
  check(table_->listen(context_, 0, handle.data(), &listener), "listen");
  return listener;
}

void Plugin::close_listener(void* listener) { (void)table_->ending.close_listen(listener); }

void* Plugin::connect(Handle& handle) {
  void* comm = nullptr;
  check(table_->connect(context_, 0, handle.data(), &comm, nullptr), "connect");
  return comm;
}

void* Plugin::accept(void* listener) {
  void* comm = nullptr;
  check(table_->setup.accept(listener, &comm, nullptr), "accept");
  return comm;
}

void* Plugin::send(void* comm, void* data, size_t size) {
  void* request = nullptr;
  check(table_->isend(comm, data, size, 0, nullptr, nullptr, &request), "isend");
  return request;
}

void* Plugin::receive(void* comm, void* data, size_t size) {
  void* request = nullptr;
  int tag = 0;
  check(table_->irecv(comm, 1, &data, &size, &tag, nullptr, nullptr, &request), "irecv");
  return request;
}

bool Plugin::test(void* request, int& size) {
  int is_done = 0;
  check(table_->ending.test(request, &is_done, &size), "test");
  return is_done != 0;
}

void Plugin::close_send(void* comm) { (void)table_->ending.close_send(comm); }
void Plugin::close_receive(void* comm) { (void)table_->ending.close_receive(comm); }

std::string installed_plugin() { return own_prefix() + "/lib/libnccl-net-ringbolt.so"; }

std::optional<Figure> measure(Pair& pair, bool is_up, uint64_t size) {
  const bool sends = (pair.rank < pair.other) == is_up;
  Figure figure;
  figure.size = size;
  std::vector<std::byte> bytes(size);
  figure.time_us = measure_time(pair, sends, bytes);
  measure_rate(pair, sends, size, figure);
  return sends ? std::nullopt : std::optional(figure);
}

}  // namespace ringbolt::tools::nccl_command
