#include "pair/offer.h"

#include "json_text.h"

namespace ringbolt::tools::pair {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(QueuePairAddress, number, psn)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Offer, gid, lid, mtu_bytes, target_depth, seed, window, send_slots, stride,
                                   send_address, receive_address, remote_key, queue_pairs)

std::string emit_offer(const Offer& offer) { return to_line(offer); }

std::optional<Offer> parse_offer(std::string_view text) {
  constexpr size_t kMostQueuePairs = 4096;
  std::optional<Offer> offer = from_line<Offer>(text);
  const bool is_sound =
      offer && offer->queue_pairs.size() <= kMostQueuePairs && offer->window != 0 && offer->send_slots != 0;
  return is_sound ? std::move(offer) : std::nullopt;
}

}  // namespace ringbolt::tools::pair
