#include "verify/abilities.h"

#include <algorithm>

#include "json_text.h"

namespace ringbolt::tools::verify {
namespace {

uint32_t count_of(int value) { return value > 0 ? static_cast<uint32_t>(value) : 1; }

}  // namespace

Abilities abilities_of(const pair::Device& device) {
  const ibv_device_attr& limits = device.limits();
  Abilities one;
  one.has_rc = device.has_rc();
  one.has_ud = device.has_ud();
  one.has_atomics = one.has_rc && limits.atomic_cap != IBV_ATOMIC_NONE;
  one.counts_frames = device.counts_frames();
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
  both.port_rate_gbps =
      one.port_rate_gbps == 0 || (other.port_rate_gbps > 0 && other.port_rate_gbps < one.port_rate_gbps)
          ? other.port_rate_gbps
          : one.port_rate_gbps;
  return both;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Abilities, has_rc, has_ud, has_atomics, counts_frames, most_queue_pairs,
                                   most_completions, most_requests, mtu_bytes, most_message_bytes, port_rate_gbps)

std::string emit_abilities(const Abilities& one) { return to_line(one); }

std::optional<Abilities> parse_abilities(std::string_view text) {
  std::optional<Abilities> one = from_line<Abilities>(text);
  const bool makes_sense = one && one->most_queue_pairs != 0 && one->most_completions != 0 && one->most_requests != 0 &&
                           one->mtu_bytes >= 64 && one->most_message_bytes != 0 && one->port_rate_gbps >= 0;
  return makes_sense ? one : std::nullopt;
}

}  // namespace ringbolt::tools::verify
