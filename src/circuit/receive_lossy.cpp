// What a receive circuit does beside frames where a rail may lose some without a word, as UC does. Hot path: see
// receive_circuit.h.
//
// The sender numbers the frames of such a rail and sends again what has not come. It is told which have as soon as
// there is nothing else to do, whether a receive has been posted for them or not, and whenever it asks by a greeting.
#include <algorithm>

#include <fmt/format.h>

#include "base/crc.h"
#include "circuit/receive_circuit.h"

namespace ringbolt::circuit {

/// A frame's number among its rail's. Nothing: it has been dealt with.
std::optional<uint32_t> ReceiveCircuit::number_of(OnRail& rail, const Rail::Received& received,
                                                  const FrameHeader& header) {
  if (!header.is_numbered) {
    if (rail.n_received - rail.n_taken < kWindow && !rail.may_lose) {
      // RC delivers in order, so the frame's number is how many came before it.
      return rail.n_received++;
    }
    fail(FailureKind::protocol,
         rail.may_lose
             ? fmt::format("{} sends frames without numbers on {}", peer_name(), rail.rail->name())
             : fmt::format("{} sends more frames than there are receives, on {}", peer_name(), rail.rail->name()));
    return std::nullopt;
  }
  // Also without a hello: that may be what was lost.
  rail.may_lose = rail.owes_word = true;
  if (is_spoilt(header, received.frame + header_bytes_of(header.kind))) {
    // The sender has not heard that it has come; the word that it owes says so.
    (void)rail.rail->free(received.slot);  // it counts as lost
    return std::nullopt;
  }
  switch (rail.come.note(header.number, rail.n_taken)) {
    case Come::Is::news:
      break;
    case Come::Is::known:
      (void)rail.rail->free(received.slot);
      return std::nullopt;
    case Come::Is::impossible:
      fail(FailureKind::protocol, fmt::format("{} sends frame {}, where {} are taken, on {}", peer_name(),
                                              header.number, rail.n_taken, rail.rail->name()));
      return std::nullopt;
  }
  if (static_cast<int32_t>(header.number - rail.n_received) >= 0) {
    // Those between are missing, and stay untaken.
    rail.n_received = header.number + 1;
  }
  ++rail.n_unsaid;
  return header.number;
}

bool ReceiveCircuit::is_spoilt(const FrameHeader& header, const std::byte* payload) const {
  return header.has_checksum && !header.is_written && base::crc32c(0, {payload, header.length}) != header.checksum;
}

}  // namespace ringbolt::circuit
