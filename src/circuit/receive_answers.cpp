// What a receive circuit tells its sender of frames. Hot path: see receive_circuit.h.
#include <algorithm>

#include "circuit/receive_circuit.h"

namespace ringbolt::circuit {

/// The next ring that no rail sends from, in turn: of UC a device may read answers of a rail that has failed. Nothing:
/// all are in use.
std::optional<uint32_t> ReceiveCircuit::take_answer_ring() {
  for (uint32_t i = 0; i < kAnswerRings; ++i) {
    const uint32_t ring = (next_answer_ring_ + i) % kAnswerRings;
    const auto has_it = [ring](const OnRail& rail) { return !rail.has_failed && rail.answer_ring == ring; };
    if (std::ranges::none_of(rails_, has_it)) {
      next_answer_ring_ = ring + 1;
      return ring;
    }
  }
  return std::nullopt;
}

void ReceiveCircuit::tell_taken(OnRail& rail) {
  if (rail.rail->may_send()) {
    answer(rail, FrameKind::taken);
    rail.n_told = rail.n_taken;
    rail.untold_bytes = 0;
    rail.owes_word = false;
    rail.n_unsaid = 0;
  }
}

void ReceiveCircuit::answer(OnRail& rail, FrameKind kind) {
  FrameHeader header;
  header.kind = kind;
  header.rail = rail.number;
  header.circuit = static_cast<uint32_t>(id());
  header.taken = rail.n_taken;
  header.come = rail.may_lose && kind == FrameKind::taken ? rail.come.bits(rail.n_taken) : 0;
  // The device may still read the last ones.
  const size_t place = rail.answer_ring * kAnswers + rail.n_answers++ % kAnswers;
  std::byte* const at = answers_.bytes().data() + place * kFrameHeaderBytes;
  emit(header, at);
  rail.has_failed = !rail.rail->send(at, kShortHeaderBytes) || rail.has_failed;
}

}  // namespace ringbolt::circuit
