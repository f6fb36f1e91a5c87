#include "memory_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ringbolt::sim {
namespace {

using transport::Operation;
using transport::Placed;

/// An operation number that no operation has: the bytes that READs find.
constexpr uint32_t kReadPattern = 0xffff'0000;

/// Whether the responder's host hears of it at all before its completion.
bool is_visible(const Operation& operation) {
  return operation.kind == Operation::send || operation.is_atomic() ||
         (operation.kind == Operation::write && (operation.length != 0 || operation.has_immediate));
}

}  // namespace

MemoryHost::MemoryHost(uint32_t side, const Workload& outbound, const Workload& inbound)
    : side_(side),
      outbound_(outbound),
      inbound_(inbound),
      region_(inbound.region_bytes()),
      reads_(outbound.operations.size()),
      found_(outbound.operations.size()) {
  for (uint64_t at = inbound.written_bytes; at < inbound.written_bytes + inbound.read_bytes; ++at) {
    region_[at] = pattern(side, kReadPattern, at);
  }
  for (size_t i = 0; i < outbound.operations.size(); ++i) {
    if (outbound.operations[i].kind == Operation::read) {
      reads_[i].resize(outbound.operations[i].length);
    }
  }
}

void MemoryHost::complain(std::string text) {
  if (complaint_.empty()) {
    complaint_ = fmt::format("side {}: {}", side_, text);
  }
}

const Operation* MemoryHost::current(const char* call) {
  while (executed_ < inbound_.operations.size() && !is_visible(inbound_.operations[executed_])) {
    ++executed_;
  }
  if (executed_ == inbound_.operations.size()) {
    complain(fmt::format("{} after everything was executed", call));
    return nullptr;
  }
  return &inbound_.operations[executed_];
}

bool MemoryHost::take_receive() {
  if (has_receive_) {
    complain("a receive is taken while another is current");
  }
  if (taken_ == posted_) {
    return false;
  }
  ++taken_;
  has_receive_ = true;
  message_.clear();
  return true;
}

Placed MemoryHost::place_receive(uint32_t offset, std::span<const std::byte> bytes) {
  if (!has_receive_ || bytes.empty()) {
    complain("bytes are placed without a receive, or no bytes");
    return Placed::protection;
  }
  if (expects_gaps_ && offset == 0) {
    message_.clear();
  }
  if (offset != message_.size()) {
    complain(fmt::format("bytes for offset {} come at {}", offset, message_.size()));
  }
  if (offset + bytes.size() > inbound_.receives[taken_ - 1]) {
    return Placed::too_long;
  }
  message_.insert(message_.end(), bytes.begin(), bytes.end());
  return Placed::ok;
}

bool MemoryHost::find_message(const transport::Received& received) {
  // Without acknowledgements some are missing; the immediate data says which this is, and they stay in order.
  const size_t from = executed_;
  while (executed_ < inbound_.operations.size() && inbound_.operations[executed_].immediate != received.immediate) {
    ++executed_;
  }
  if (executed_ == inbound_.operations.size()) {
    complain(fmt::format("a message with immediate {:#x} comes twice, out of order, or was never sent (after {})",
                         received.immediate, from));
    return false;
  }
  if (inbound_.operations[executed_].kind == Operation::write) {
    const Operation& operation = inbound_.operations[executed_];
    for (uint32_t i = 0; i < operation.length; ++i) {
      if (region_[operation.remote_address - kRegionAddress + i] !=
          pattern(1 - side_, static_cast<uint32_t>(executed_), i)) {
        complain(fmt::format("WRITE {} is announced, but byte {} is missing", executed_, i));
        return false;
      }
    }
    written_ = operation.length;
  }
  return true;
}

void MemoryHost::complete_receive(const transport::Received& received) {
  if (!has_receive_) {
    complain("a receive completes that was not taken");
    return;
  }
  has_receive_ = false;
  ++messages_;
  const bool is_send = received.kind == transport::Received::send;
  if (received.length == 0) {
    message_.clear();  // nothing was placed; UC may have left the beginning of a message that it dropped
  }
  if (expects_gaps_ && !find_message(received)) {
    return;
  }
  const Operation* operation = current("complete_receive");
  if (operation == nullptr) {
    return;
  }
  if (is_send != (operation->kind == Operation::send) || received.length != operation->length ||
      received.has_immediate != operation->has_immediate || received.is_solicited != operation->is_solicited ||
      (received.has_immediate && received.immediate != operation->immediate) ||
      received.invalidated != operation->invalidates || is_invalidated_ != operation->invalidates ||
      (is_send ? message_.size() : written_) != operation->length) {
    complain(fmt::format("message {} arrives as something else ({} bytes for {})", executed_, received.length,
                         operation->length));
  }
  for (size_t i = 0; i < message_.size() && is_send; ++i) {
    if (message_[i] != pattern(1 - side_, static_cast<uint32_t>(executed_), i)) {
      complain(fmt::format("message {}: byte {} of {} is wrong", executed_, i, message_.size()));
      break;
    }
  }
  is_invalidated_ = false;
  written_ = 0;
  ++executed_;
}

bool MemoryHost::invalidate(uint32_t key) {
  const Operation* operation = current("invalidate");
  if (operation == nullptr || !operation->invalidates || operation->invalidate_key != key || is_invalidated_) {
    complain(fmt::format("key {:#x} is invalidated without cause, or twice", key));
    return false;
  }
  is_invalidated_ = true;
  return true;
}

bool MemoryHost::may_access(uint64_t address, uint32_t length, uint32_t key, transport::Access) const {
  return key == kRegionKey && address >= kRegionAddress && address - kRegionAddress <= region_.size() &&
         length <= region_.size() - (address - kRegionAddress);
}

bool MemoryHost::write(uint64_t address, uint32_t key, std::span<const std::byte> bytes) {
  if (!may_access(address, static_cast<uint32_t>(bytes.size()), key, transport::Access::write)) {
    return false;
  }
  std::memcpy(region_.data() + (address - kRegionAddress), bytes.data(), bytes.size());
  if (expects_gaps_) {
    return true;
  }
  const Operation* operation = current("write");
  if (operation == nullptr || operation->kind != Operation::write || address != operation->remote_address + written_) {
    complain(fmt::format("a WRITE at {:#x} is out of turn", address));
    return true;
  }
  written_ += bytes.size();
  if (written_ == operation->length && !operation->has_immediate) {
    written_ = 0;
    ++executed_;
  }
  return true;
}

uint64_t MemoryHost::load_counter() const {
  uint64_t value = 0;
  std::memcpy(&value, region_.data() + region_.size() - sizeof value, sizeof value);
  return value;
}

void MemoryHost::store_counter(uint64_t value) {
  std::memcpy(region_.data() + region_.size() - sizeof value, &value, sizeof value);
}

std::optional<uint64_t> MemoryHost::compare_swap(uint64_t, uint32_t, uint64_t compare, uint64_t swap) {
  const Operation* operation = current("compare_swap");
  const uint64_t before = load_counter();
  if (operation == nullptr || operation->kind != Operation::compare_swap || before != compare) {
    complain(fmt::format("compare-and-swap out of turn: {} found, {} expected", before, compare));
  }
  store_counter(before == compare ? swap : before);
  ++executed_;
  return before;
}

std::optional<uint64_t> MemoryHost::fetch_add(uint64_t, uint32_t, uint64_t add) {
  const Operation* operation = current("fetch_add");
  const uint64_t before = load_counter();
  if (operation == nullptr || operation->kind != Operation::fetch_add || before != operation->compare) {
    complain(fmt::format("fetch-and-add out of turn: {} found", before));
  }
  store_counter(before + add);
  ++executed_;
  return before;
}

void MemoryHost::fail(transport::ResponderFailure why) {
  if (failed_) {
    complain("fails twice");
  }
  failed_ = why;
}

bool MemoryHost::place_read(uint32_t operation, uint32_t offset, std::span<const std::byte> bytes) {
  if (operation >= reads_.size() || offset + bytes.size() > reads_[operation].size()) {
    complain(fmt::format("answer to READ {} at {} does not fit", operation, offset));
    return false;
  }
  std::memcpy(reads_[operation].data() + offset, bytes.data(), bytes.size());
  return true;
}

bool MemoryHost::place_atomic(uint32_t operation, uint64_t value) {
  if (operation >= found_.size() || (found_[operation] && *found_[operation] != value)) {
    complain(fmt::format("atomic {} is answered with two values", operation));
    return false;
  }
  found_[operation] = value;
  return true;
}

std::span<const std::byte> MemoryHost::payload(const transport::OutPacket& packet) {
  payload_.resize(packet.length);
  switch (packet.payload) {
    case transport::OutPacket::Payload::none:
      payload_.clear();
      break;
    case transport::OutPacket::Payload::operation:
      for (uint32_t i = 0; i < packet.length; ++i) {
        payload_[i] = pattern(side_, packet.operation, packet.offset + uint64_t{i});
      }
      break;
    case transport::OutPacket::Payload::memory:
      if (may_access(packet.address, packet.length, packet.key, transport::Access::read)) {
        std::memcpy(payload_.data(), region_.data() + (packet.address - kRegionAddress), packet.length);
      } else {
        complain(fmt::format("READ response from {:#x} outside the region", packet.address));
      }
      break;
    case transport::OutPacket::Payload::bytes:
      std::memcpy(payload_.data(), packet.bytes.data(), packet.length);
      break;
  }
  return payload_;
}

void MemoryHost::check_complete(uint32_t operation, const MemoryHost& peer) {
  if (expects_gaps_) {
    return;  // complete means gone
  }
  const Operation& what = outbound_.operations[operation];
  if (what.kind == Operation::read) {
    const uint64_t from = what.remote_address - kRegionAddress;
    if (!std::equal(reads_[operation].begin(), reads_[operation].end(),
                    peer.region_.begin() + static_cast<ptrdiff_t>(from))) {
      complain(fmt::format("READ {} is complete with wrong data", operation));
    }
    return;
  }
  if (is_visible(what) && peer.executed_ <= operation) {
    complain(fmt::format("operation {} is complete, but the peer is at {}", operation, peer.executed_));
  }
  if (what.is_atomic() && found_[operation] != what.compare) {
    complain(fmt::format("atomic {} is complete without the value it should have found", operation));
  }
}

void MemoryHost::check_all_executed() {
  while (executed_ < inbound_.operations.size() && !is_visible(inbound_.operations[executed_])) {
    ++executed_;
  }
  if (!expects_gaps_ && executed_ != inbound_.operations.size()) {
    complain(fmt::format("only {} of {} operations were executed", executed_, inbound_.operations.size()));
  }
  std::vector<std::byte> expected(inbound_.written_bytes);
  for (size_t i = 0; i < inbound_.operations.size(); ++i) {
    const Operation& operation = inbound_.operations[i];
    for (uint32_t at = 0; operation.kind == Operation::write && at < operation.length; ++at) {
      expected[operation.remote_address - kRegionAddress + at] = pattern(1 - side_, static_cast<uint32_t>(i), at);
    }
  }
  for (size_t at = 0; at < expected.size(); ++at) {
    if (region_[at] != expected[at] && !(expects_gaps_ && region_[at] == std::byte{})) {
      complain(fmt::format("byte {} of the region is wrong", at));
      return;
    }
  }
}

}  // namespace ringbolt::sim
