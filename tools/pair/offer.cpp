#include "pair/offer.h"

#include <charconv>

#include <fmt/format.h>

namespace ringbolt::tools::pair {
namespace {

constexpr size_t kMostQueuePairs = 4096;

/// Takes numbers off the front of a text; once one is missing or too large, so are all.
class Numbers {
 public:
  explicit Numbers(std::string_view text) : text_(text) {}

  template <class T>
  void take(T& value) {
    while (!text_.empty() && text_.front() == ' ') {
      text_.remove_prefix(1);
    }
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    is_good_ = is_good_ && error == std::errc{};
    text_.remove_prefix(is_good_ ? static_cast<size_t>(end - text_.data()) : text_.size());
  }
  bool is_good() const { return is_good_; }
  bool is_at_end() const { return text_.empty(); }

 private:
  std::string_view text_;
  bool is_good_ = true;
};

}  // namespace

std::string emit_offer(const Offer& offer) {
  std::string text;
  for (const uint8_t byte : offer.gid) {
    text += fmt::format("{} ", byte);
  }
  text += fmt::format("{} {} {} {} {} {} {} {} {} {} {}", offer.lid, offer.mtu_bytes, offer.target_depth, offer.seed,
                      offer.window, offer.send_slots, offer.stride, offer.send_address, offer.receive_address,
                      offer.remote_key, offer.queue_pairs.size());
  for (const QueuePairAddress& one : offer.queue_pairs) {
    text += fmt::format(" {} {}", one.number, one.psn);
  }
  return text;
}

std::optional<Offer> parse_offer(std::string_view text) {
  Numbers numbers(text);
  Offer offer;
  for (uint8_t& byte : offer.gid) {
    numbers.take(byte);
  }
  size_t count = 0;
  numbers.take(offer.lid);
  numbers.take(offer.mtu_bytes);
  numbers.take(offer.target_depth);
  numbers.take(offer.seed);
  numbers.take(offer.window);
  numbers.take(offer.send_slots);
  numbers.take(offer.stride);
  numbers.take(offer.send_address);
  numbers.take(offer.receive_address);
  numbers.take(offer.remote_key);
  numbers.take(count);
  if (!numbers.is_good() || count > kMostQueuePairs || offer.window == 0 || offer.send_slots == 0) {
    return std::nullopt;
  }
  for (size_t i = 0; i < count; ++i) {
    QueuePairAddress one;
    numbers.take(one.number);
    numbers.take(one.psn);
    offer.queue_pairs.push_back(one);
  }
  return numbers.is_good() && numbers.is_at_end() ? std::optional(offer) : std::nullopt;
}

}  // namespace ringbolt::tools::pair
