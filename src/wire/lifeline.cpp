#include "wire/lifeline.h"

#include <algorithm>

#include "wire/bytes.h"

namespace ringbolt::wire {
namespace {

// Behind the header of all datagrams lies, in a vendor's class, that of long transfers (zero: none) and the OUI.
struct OfferAt {
  static constexpr size_t oui = 37, local_id = 40, remote_id = 44, token = 48, port = 56, end = 58;
};
static_assert(OfferAt::end <= kMadBytes);
constexpr uint16_t kAttributeOffer = 1;
constexpr uint16_t kAttributeAnswer = 2;

struct WordAt {
  static constexpr size_t magic = 0, kind = 4, sender = 8, receiver = 16, end = 24;
};
static_assert(WordAt::end == kLifelineWordBytes);
constexpr uint32_t kWordMagic = 0x52424c31;  // "RBL1"

}  // namespace

std::optional<LifelineOffer> parse_lifeline_offer(MadIn mad) {
  const MadHeader header = parse_mad_header(mad);
  const bool is_answer = header.attribute == kAttributeAnswer;
  if (header.base_version != kMadBaseVersion || header.management_class != kMadClassLifeline ||
      header.class_version != kLifelineClassVersion || header.method != kMadMethodSend ||
      (header.attribute != kAttributeOffer && !is_answer) || get_be24(mad, OfferAt::oui) != kLifelineOui) {
    return std::nullopt;
  }
  return LifelineOffer{get_be<uint32_t>(mad, OfferAt::local_id), get_be<uint32_t>(mad, OfferAt::remote_id),
                       get_be<uint64_t>(mad, OfferAt::token), get_be<uint16_t>(mad, OfferAt::port), is_answer};
}

void emit(const LifelineOffer& offer, MadOut mad) {
  std::ranges::fill(mad, std::byte{0});
  MadHeader header;
  header.management_class = kMadClassLifeline;
  header.class_version = kLifelineClassVersion;
  header.transaction_id = offer.token;
  header.attribute = offer.is_answer ? kAttributeAnswer : kAttributeOffer;
  emit(header, mad);
  put_be24(mad, OfferAt::oui, kLifelineOui);
  put_be(mad, OfferAt::local_id, offer.local_id);
  put_be(mad, OfferAt::remote_id, offer.remote_id);
  put_be(mad, OfferAt::token, offer.token);
  put_be(mad, OfferAt::port, offer.port);
}

std::optional<LifelineWord> parse_lifeline_word(std::span<const std::byte, kLifelineWordBytes> bytes) {
  const auto kind = get_be<uint32_t>(bytes, WordAt::kind);
  if (get_be<uint32_t>(bytes, WordAt::magic) != kWordMagic || kind < static_cast<uint32_t>(LifelineWord::Kind::hello) ||
      kind > static_cast<uint32_t>(LifelineWord::Kind::bye)) {
    return std::nullopt;
  }
  return LifelineWord{static_cast<LifelineWord::Kind>(kind), get_be<uint64_t>(bytes, WordAt::sender),
                      get_be<uint64_t>(bytes, WordAt::receiver)};
}

std::array<std::byte, kLifelineWordBytes> emit(const LifelineWord& word) {
  std::array<std::byte, kLifelineWordBytes> bytes{};
  put_be(std::span<std::byte>(bytes), WordAt::magic, kWordMagic);
  put_be(std::span<std::byte>(bytes), WordAt::kind, static_cast<uint32_t>(word.kind));
  put_be(std::span<std::byte>(bytes), WordAt::sender, word.sender);
  put_be(std::span<std::byte>(bytes), WordAt::receiver, word.receiver);
  return bytes;
}

}  // namespace ringbolt::wire
