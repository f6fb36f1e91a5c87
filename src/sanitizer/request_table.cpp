#include "sanitizer/request_table.h"

#include <utility>

namespace ringbolt::sanitizer {

Request& RequestTable::insert(Owner request) {
  Request& one = *request;
  requests_.emplace(one.number, std::move(request));
  for (const Piece& piece : one.pieces) {
    // Two pieces that begin at one address share an entry, of the longer one.
    spans_of(one).add(piece.address, piece.length, one.number);
  }
  return one;
}

Request* RequestTable::find(uint32_t number) const {
  const auto known = requests_.find(number);
  return known == requests_.end() ? nullptr : known->second.get();
}

RequestTable::Owner RequestTable::take_out(uint32_t number) {
  const auto known = requests_.find(number);
  if (known == requests_.end()) {
    return nullptr;
  }
  Owner request = std::move(known->second);
  requests_.erase(known);
  for (const Piece& one : request->pieces) {
    spans_of(*request).remove(one.address, number);
  }
  return request;
}

Request* RequestTable::writer_of(uint64_t address, uint64_t length_bytes) const {
  const auto number = written_to_.overlap(address, length_bytes, [](uint32_t) { return true; });
  return number ? find(*number) : nullptr;
}

Request* RequestTable::reader_of(uint64_t address, uint64_t length_bytes) const {
  const auto number = sent_from_.overlap(address, length_bytes, [this](uint32_t one) {
    const Request* const known = find(one);
    return known != nullptr && !known->is_given_up;
  });
  return number ? find(*number) : nullptr;
}

void RequestTable::clear() {
  requests_.clear();
  sent_from_ = written_to_ = {};
  old_ids_.clear();
}

}  // namespace ringbolt::sanitizer
