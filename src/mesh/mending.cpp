#include "mesh/mending.h"

#include <algorithm>

#include "mesh/shares.h"

namespace ringbolt::mesh {

std::vector<std::byte> emit(const MendingWord& word) {
  base::ByteWriter writer;
  writer.put(word.fabric_cable);
  writer.put(word.incarnation);
  writer.put(static_cast<uint8_t>(word.stage));
  writer.put_bytes(std::as_bytes(std::span(word.address.gid.raw)));
  writer.put(word.address.lid);
  for (const engine::Size size : engine::kSizes) {
    writer.put(word.address.qp_number[static_cast<size_t>(size)]);
    writer.put(word.address.psn[static_cast<size_t>(size)]);
  }
  return writer.bytes();
}

std::optional<MendingWord> parse_mending(std::span<const std::byte> bytes) {
  base::ByteReader reader(bytes);
  MendingWord word;
  word.fabric_cable = reader.take<uint32_t>();
  word.incarnation = reader.take<uint16_t>();
  const auto stage = reader.take<uint8_t>();
  for (uint8_t& byte : word.address.gid.raw) {
    byte = reader.take<uint8_t>();
  }
  word.address.lid = reader.take<uint16_t>();
  for (const engine::Size size : engine::kSizes) {
    word.address.qp_number[static_cast<size_t>(size)] = reader.take<uint32_t>();
    word.address.psn[static_cast<size_t>(size)] = reader.take<uint32_t>();
  }
  if (!reader.is_sound() || !reader.is_at_end() || stage > static_cast<uint8_t>(MendingWord::Stage::working)) {
    return std::nullopt;
  }
  word.stage = static_cast<MendingWord::Stage>(stage);
  return word;
}

void Mending::fail(uint16_t incarnation) {
  stage_ = Stage::failed;
  incarnation_ = incarnation;
}

bool Mending::hear(const MendingWord& word) {
  // Numbers of 16 bits wrap, and are compared as RFC 1982 has it: the two are never half of all numbers apart.
  const auto newer = static_cast<int16_t>(word.incarnation - peer_.incarnation);
  if (newer > 0 || (newer == 0 && word.stage > peer_.stage)) {
    peer_ = word;
  }
  return stage_ != Stage::failed && static_cast<int16_t>(word.incarnation - incarnation_) > 0;
}

/// Else both ends could wait for ever: the last word of the end that works may have been lost, and it says no more.
bool Mending::owes_answer(const MendingWord& word) const {
  return stage_ == Stage::working && word.stage != Stage::working && word.incarnation == incarnation_;
}

uint16_t Mending::next_incarnation() const {
  const auto ours = static_cast<uint16_t>(incarnation_ + 1);
  // The greater one of both ends: so both come to the same number, whichever has failed more often.
  return static_cast<int16_t>(peer_.incarnation - ours) > 0 ? peer_.incarnation : ours;
}

Mending::Step Mending::next() const {
  const bool is_same = peer_.incarnation == incarnation_;
  switch (stage_) {
    case Stage::failed:
      return Step::reset;
    case Stage::reset:
      return is_same && peer_.stage >= Stage::reset ? Step::connect : Step::nothing;
    case Stage::connected:
      return is_same && peer_.stage >= Stage::connected ? Step::start : Step::nothing;
    case Stage::working:
      return Step::nothing;
  }
  return Step::nothing;
}

void Mending::done(Step step) {
  if (step == Step::reset) {
    incarnation_ = next_incarnation();
    stage_ = Stage::reset;
  } else if (step == Step::connect) {
    stage_ = Stage::connected;
  } else if (step == Step::start) {
    stage_ = Stage::working;
  }
}

}  // namespace ringbolt::mesh
