#include "pairs.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace ringbolt::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kLast = 1U << 31U;
constexpr uint64_t kDeadlineMs = 60'000;

/// Element 0 is the number of the message in its stream, with kLast in the last one; the others tell pair, place and
/// turn.
uint32_t element(uint32_t from, uint32_t to, uint32_t turn, size_t i) {
  return (from + 1) * 1'000'003U + (to + 1) * 10'007U + turn * 101U + static_cast<uint32_t>(i) * 7U;
}

CallOptions options() {
  CallOptions made;
  made.timeout_ms = kDeadlineMs;
  return made;
}

uint64_t ms_between(Clock::time_point from, Clock::time_point to) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(to - from).count());
}

/// Returns what went wrong.
std::string send_stream(Group& group, uint32_t to, size_t count, Clock::time_point end) {
  std::vector<uint32_t> data(count);
  for (uint32_t turn = 0;; ++turn) {
    const bool is_last = Clock::now() >= end;
    for (size_t i = 1; i < count; ++i) {
      data[i] = element(group.rank(), to, turn, i);
    }
    data[0] = turn | (is_last ? kLast : 0);
    const Status status = group.send(data.data(), count, Type::uint32, to, options());
    if (!status.is_ok() || is_last) {
      return status.text;
    }
  }
}

Arrivals receive_stream(Group& group, uint32_t from, size_t count) {
  Arrivals arrivals;
  std::vector<uint32_t> data(count);
  Clock::time_point before = Clock::now();
  for (uint32_t turn = 0;; ++turn) {
    const Status status = group.recv(data.data(), count, Type::uint32, from, options());
    if (!status.is_ok()) {
      arrivals.problem = status.text;
      return arrivals;
    }
    const Clock::time_point now = Clock::now();
    arrivals.longest_gap_ms = std::max(arrivals.longest_gap_ms, ms_between(before, now));
    before = now;
    ++arrivals.messages;
    bool is_right = (data[0] & ~kLast) == turn;
    for (size_t i = 1; i < count; ++i) {
      is_right = is_right && data[i] == element(from, group.rank(), turn, i);
    }
    arrivals.wrong += is_right ? 0 : 1;
    if ((data[0] & kLast) != 0) {
      return arrivals;
    }
  }
}

}  // namespace

std::vector<Arrivals> run_pairs(Group& group, size_t count, double seconds) {
  std::vector<Arrivals> arrivals(group.size());
  std::vector<std::string> refusals(group.size());
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::vector<std::thread> streams;
  for (uint32_t peer = 0; peer < group.size(); ++peer) {
    if (peer != group.rank()) {
      streams.emplace_back([&, peer] { refusals[peer] = send_stream(group, peer, count, end); });
      streams.emplace_back([&, peer] { arrivals[peer] = receive_stream(group, peer, count); });
    }
  }
  for (std::thread& stream : streams) {
    stream.join();
  }
  for (uint32_t peer = 0; peer < group.size(); ++peer) {
    if (!refusals[peer].empty()) {
      arrivals[peer].problem += (arrivals[peer].problem.empty() ? "" : "; ") + refusals[peer];
    }
  }
  return arrivals;
}

}  // namespace ringbolt::test
