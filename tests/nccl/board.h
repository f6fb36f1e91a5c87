#pragma once

#include <time.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

/// What ranks write where the parent reads it, also when they hang or are dead: memory that both share.
namespace ringbolt::test {

enum class Call : uint32_t {
  none,
  init,
  devices,
  properties,
  listen,
  connect,
  accept,
  reg_mr,
  dereg_mr,
  isend,
  irecv,
  iflush,
  test,
  close_send,
  close_recv,
  close_listen,
  finalize,
};
inline constexpr size_t kCalls = static_cast<size_t>(Call::finalize) + 1;
inline constexpr std::array<const char*, kCalls> kCallNames = {
    "no call", "init",  "devices", "getProperties", "listen",    "connect",   "accept",      "regMr",   "deregMr",
    "isend",   "irecv", "iflush",  "test",          "closeSend", "closeRecv", "closeListen", "finalize"};
constexpr const char* name_of(Call call) { return kCallNames[static_cast<size_t>(call)]; }

inline constexpr int kMostRanks = 64;

/// Where one thread of a rank is now. One writer, the thread; the parent reads.
struct Seat {
  std::atomic<Call> call = Call::none;
  std::atomic<uint64_t> since_ns = 0;
  std::atomic<const char*> step = nullptr;  ///< a literal, at the same address in parent and child, for they are forked
};

enum : size_t { kServiceSeat, kProgressSeat, kOtherSeat, kSeats };
inline constexpr std::array<const char*, kSeats> kSeatNames = {"service", "progress", "another"};

/// One rank's. Times without what the thread spent waiting for a processor, where the kernel tells that.
struct Board {
  std::array<Seat, kSeats> seats;
  std::array<std::atomic<uint64_t>, kCalls> longest_ns;
  std::array<std::atomic<uint64_t>, kCalls> calls;
  /// Of the calls that are timed fairly: the longest in time of a processor, and how often one slept.
  std::array<std::atomic<uint64_t>, kCalls> longest_processor_ns;
  std::array<std::atomic<uint64_t>, kCalls> sleeps;
  std::array<std::atomic<uint64_t>, kMostRanks> received_bytes;  ///< by the sender
};

inline uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(now.tv_nsec);
}

inline double seconds_since(uint64_t begin_ns) { return static_cast<double>(now_ns() - begin_ns) * 1e-9; }

}  // namespace ringbolt::test
