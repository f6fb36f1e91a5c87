// Any 256 bytes as a datagram of the connection manager, or about a lifeline: refused, or a message that is written
// back and read again the same, without a bit that was not there before.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <variant>

#include "base/assert.h"
#include "wire/cm_message.h"
#include "wire/cm_private.h"
#include "wire/lifeline.h"

namespace {

using namespace ringbolt;

template <size_t N>
void check_ip_header(const std::array<std::byte, N>& private_data) {
  if (const auto header = wire::parse_cm_ip_header(std::span(private_data).template first<wire::kCmIpHeaderBytes>())) {
    std::array<std::byte, wire::kCmIpHeaderBytes> written{};
    wire::emit(*header, written);
    RINGBOLT_ASSERT(wire::parse_cm_ip_header(written).value() == *header);
  }
}

void check_lifeline(wire::MadIn mad) {
  if (const auto offer = wire::parse_lifeline_offer(mad)) {
    std::array<std::byte, wire::kMadBytes> written{};
    wire::emit(*offer, written);
    RINGBOLT_ASSERT(wire::parse_lifeline_offer(written) == offer);
  }
  if (const auto word = wire::parse_lifeline_word(mad.first<wire::kLifelineWordBytes>())) {
    RINGBOLT_ASSERT(std::ranges::equal(wire::emit(*word), mad.first<wire::kLifelineWordBytes>()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::array<std::byte, wire::kMadBytes> mad{};
  const auto in = std::as_bytes(std::span(data, std::min(size, mad.size())));
  std::copy(in.begin(), in.end(), mad.begin());
  check_lifeline(mad);
  const auto message = wire::parse_cm(mad);
  if (!message) {
    return 0;
  }
  if (const auto* req = std::get_if<wire::CmReq>(&message->message)) {
    check_ip_header(req->private_data);
  }
  if (const auto* req = std::get_if<wire::CmSidrReq>(&message->message)) {
    check_ip_header(req->private_data);
  }
  std::array<std::byte, wire::kMadBytes> written{};
  wire::emit(*message, written);
  for (size_t i = 0; i < wire::kMadBytes; ++i) {
    RINGBOLT_ASSERT((written[i] & ~mad[i]) == std::byte{0});
  }
  RINGBOLT_ASSERT(wire::parse_cm(written).value() == *message);
  return 0;
}
