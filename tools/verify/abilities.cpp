#include "verify/abilities.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace ringbolt::tools::verify {
namespace {

uint32_t count_of(int value) { return value > 0 ? static_cast<uint32_t>(value) : 1; }

}  // namespace

Abilities abilities_of(const pair::Device& device) {
  const ibv_device_attr& limits = device.limits();
  Abilities one;
  one.has_rc = limits.max_qp_rd_atom > 0;
  one.has_ud = limits.max_ah > 0;
  one.has_atomics = one.has_rc && limits.atomic_cap != IBV_ATOMIC_NONE;
  one.counts_frames = !one.has_rc && !one.has_ud && limits.max_sge == 1;
  one.most_queue_pairs = count_of(limits.max_qp);
  one.most_completions = count_of(limits.max_cqe);
  one.most_requests = count_of(limits.max_qp_wr);
  one.mtu_bytes = device.mtu_bytes();
  one.most_message_bytes = device.most_message_bytes();
  one.port_rate_gbps = device.port_rate_gbps();
  return one;
}

Abilities common(const Abilities& one, const Abilities& other) {
  Abilities both;
  both.has_rc = one.has_rc && other.has_rc;
  both.has_ud = one.has_ud && other.has_ud;
  both.has_atomics = one.has_atomics && other.has_atomics;
  both.counts_frames = one.counts_frames || other.counts_frames;
  both.most_queue_pairs = std::min(one.most_queue_pairs, other.most_queue_pairs);
  both.most_completions = std::min(one.most_completions, other.most_completions);
  both.most_requests = std::min(one.most_requests, other.most_requests);
  both.mtu_bytes = std::min(one.mtu_bytes, other.mtu_bytes);
  both.most_message_bytes = std::min(one.most_message_bytes, other.most_message_bytes);
  return both;
}

std::string emit_abilities(const Abilities& one) {
  return fmt::format("{:d} {:d} {:d} {:d} {} {} {} {} {} {}", one.has_rc, one.has_ud, one.has_atomics,
                     one.counts_frames, one.most_queue_pairs, one.most_completions, one.most_requests, one.mtu_bytes,
                     one.most_message_bytes, one.port_rate_gbps);
}

std::optional<Abilities> parse_abilities(std::string_view text) {
  std::array<double, 10> numbers{};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (double& number : numbers) {
    at += at != end && *at == ' ' ? 1 : 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || !(number >= 0 && number <= std::numeric_limits<uint32_t>::max())) {
      return std::nullopt;
    }
    at = next;
  }
  if (at != end || numbers[4] < 1 || numbers[5] < 1 || numbers[6] < 1 || numbers[7] < 64 || numbers[8] < 1) {
    return std::nullopt;
  }
  const auto whole = [&](size_t index) { return static_cast<uint32_t>(numbers[index]); };
  return Abilities{numbers[0] != 0, numbers[1] != 0, numbers[2] != 0, numbers[3] != 0, whole(4),
                   whole(5),        whole(6),        whole(7),        whole(8),        numbers[9]};
}

}  // namespace ringbolt::tools::verify
