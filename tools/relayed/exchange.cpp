#include "relayed/exchange.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "probe/pattern.h"
#include "probe/probe_failure.h"
#include "probe/rounds.h"

namespace ringbolt::tools::relayed {
namespace {

constexpr uint64_t kWarmUpRounds = 50;
constexpr size_t kMostBatchBytes = size_t{16} << 20U;
constexpr uint64_t kMostBatch = 8;

/// Messages between this rank and one other; what fails is thrown.
class Line {
 public:
  Line(Group& group, uint32_t peer, const RelayProbeOptions& options) : group_(group), peer_(peer) {
    options_.timeout_ms = static_cast<uint64_t>(options.timeout_s * 1000) + 1;
  }

  void send_word(uint64_t word) { check(group_.send(&word, 1, Type::uint64, peer_, options_)); }
  uint64_t receive_word() {
    uint64_t word = 0;
    check(group_.recv(&word, 1, Type::uint64, peer_, options_));
    return word;
  }
  Request send(const std::vector<std::byte>& bytes) {
    return group_.send_async(bytes.data(), bytes.size(), Type::uint8, peer_, options_);
  }
  Request receive(std::vector<std::byte>& bytes) {
    return group_.recv_async(bytes.data(), bytes.size(), Type::uint8, peer_, options_);
  }
  static void check(const Status& status) {
    if (!status.is_ok()) {
      throw ProbeFailure(status.text);
    }
  }

 private:
  Group& group_;
  uint32_t peer_;
  CallOptions options_;
};

/// Some messages on their way together, and their memory.
struct Batch {
  explicit Batch(const RelayProbeOptions& options)
      : memory(std::clamp<uint64_t>(kMostBatchBytes / options.size_bytes, 1, kMostBatch),
               std::vector<std::byte>(options.size_bytes)) {}

  std::vector<std::vector<std::byte>> memory;
  std::vector<Request> requests = {};
  uint32_t first = 0;  ///< number of its first message

  void wait() {
    for (Request& request : requests) {
      Line::check(request.wait());
    }
    requests.clear();
  }
  void verify() {
    const size_t n = requests.size();
    wait();
    for (size_t i = 0; i < n; ++i) {
      const auto number = first + static_cast<uint32_t>(i);
      if (const auto place = find_mismatch(memory[i], number)) {
        throw ProbeFailure(fmt::format("message {} differs from byte {} on", number, *place));
      }
    }
  }
};

/// A word says how many messages follow it; 0 ends it. One batch is filled while the other is on its way. Time runs
/// from before the first message until the receiver says that it has verified all.
void stream(Line& line, const RelayProbeOptions& options, ProbeReport& report) {
  std::array<Batch, 2> batches{Batch(options), Batch(options)};
  const uint64_t end_ns = after_s(options.phase_s);
  const uint64_t begin = base::now_ns();
  uint32_t sent = 0;
  for (size_t turn = 0; sent < options.messages && (sent == 0 || base::now_ns() < end_ns); turn ^= 1U) {
    Batch& batch = batches.at(turn);
    batch.wait();
    const auto n = std::min(static_cast<uint32_t>(batch.memory.size()), options.messages - sent);
    line.send_word(n);
    for (uint32_t i = 0; i < n; ++i) {
      fill_pattern(batch.memory[i], sent++);
      batch.requests.push_back(line.send(batch.memory[i]));
    }
  }
  for (Batch& batch : batches) {
    batch.wait();
  }
  line.send_word(0);
  const uint64_t bytes = uint64_t{options.size_bytes} * sent;
  expect_word(line.receive_word(), bytes ^ kAnswer);
  report.duration_ns = base::now_ns() - begin;
  report.verified_bytes = bytes;
}

void verify(Line& line, const RelayProbeOptions& options) {
  std::array<Batch, 2> batches{Batch(options), Batch(options)};
  uint32_t received = 0;
  for (size_t turn = 0;; turn ^= 1U) {
    const uint64_t n = line.receive_word();
    Batch& batch = batches.at(turn);
    if (n > batch.memory.size()) {
      throw ProbeFailure(fmt::format("{} messages are to follow, and {} are the most", n, batch.memory.size()));
    }
    batch.first = received;
    for (uint32_t i = 0; i < n; ++i, ++received) {
      batch.requests.push_back(line.receive(batch.memory[i]));
    }
    batches.at(turn ^ 1U).verify();
    if (n == 0) {
      break;
    }
  }
  line.send_word((uint64_t{options.size_bytes} * received) ^ kAnswer);
}

}  // namespace

void measure(Group& group, uint32_t peer, const RelayProbeOptions& options, ProbeReport& report) {
  Line line(group, peer, options);
  ask_rounds(line, {kWarmUpRounds, options.rounds, after_s(options.phase_s)}, report);
  stream(line, options, report);
}

void answer(Group& group, uint32_t peer, const RelayProbeOptions& options) {
  Line line(group, peer, options);
  answer_rounds(line);
  verify(line, options);
}

}  // namespace ringbolt::tools::relayed
