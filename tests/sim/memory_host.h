#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/host.h"
#include "workload.h"

namespace ringbolt::sim {

/// The host of one side's engines, with memory behind it. It knows what the peer was to send (`inbound`) and what this
/// side asked for (`outbound`), checks each call against that, and keeps the first complaint. Not thread-safe.
class MemoryHost {
 public:
  MemoryHost(uint32_t side, const Workload& outbound, const Workload& inbound);

  // transport::ResponderHost
  bool take_receive();
  transport::Placed place_receive(uint32_t offset, std::span<const std::byte> bytes);
  void complete_receive(const transport::Received& received);
  bool invalidate(uint32_t key);
  bool may_access(uint64_t address, uint32_t length, uint32_t key, transport::Access access) const;
  bool write(uint64_t address, uint32_t key, std::span<const std::byte> bytes);
  std::optional<uint64_t> compare_swap(uint64_t address, uint32_t key, uint64_t compare, uint64_t swap);
  std::optional<uint64_t> fetch_add(uint64_t address, uint32_t key, uint64_t add);
  void fail(transport::ResponderFailure why);

  // transport::RequesterHost
  bool place_read(uint32_t operation, uint32_t offset, std::span<const std::byte> bytes);
  bool place_atomic(uint32_t operation, uint64_t value);

  /// Bytes that a packet of ours carries.
  std::span<const std::byte> payload(const transport::OutPacket& packet);
  /// Called for each operation of ours, in order, when its requester says that it is complete.
  void check_complete(uint32_t operation, const MemoryHost& peer);
  /// Posts the next receives, so that `count` are posted in all.
  void post_receives(size_t count) { posted_ = count < inbound_.receives.size() ? count : inbound_.receives.size(); }
  size_t posted() const { return posted_; }
  bool has_all_posted() const { return posted_ == inbound_.receives.size(); }
  /// UC: messages may be missing, so receives fit anything and each message says in its immediate data which it is.
  void expect_gaps() { expects_gaps_ = true; }
  /// All that the peer sent has had its effect, and nothing else has.
  void check_all_executed();
  size_t messages() const { return messages_; }

  /// Empty: everything is as it should be.
  const std::string& complaint() const { return complaint_; }
  std::optional<transport::ResponderFailure> failed() const { return failed_; }

 private:
  void complain(std::string text);
  /// The next operation of the peer that has an effect here, the one to which this call belongs.
  const transport::Operation* current(const char* call);
  bool find_message(const transport::Received& received);
  uint64_t load_counter() const;
  void store_counter(uint64_t value);

  uint32_t side_;
  const Workload& outbound_;
  const Workload& inbound_;
  std::vector<std::byte> region_;
  std::vector<std::byte> payload_;
  std::vector<std::vector<std::byte>> reads_;   ///< by operation of ours
  std::vector<std::optional<uint64_t>> found_;  ///< by atomic of ours
  std::vector<std::byte> message_;              ///< what has come of the current one
  size_t posted_ = 0;
  size_t taken_ = 0;
  bool has_receive_ = false;
  size_t executed_ = 0;          ///< operations of the peer whose effect is complete
  uint64_t written_ = 0;         ///< bytes of the current WRITE
  bool is_invalidated_ = false;  ///< the current SEND's key
  bool expects_gaps_ = false;
  size_t messages_ = 0;
  std::string complaint_;
  std::optional<transport::ResponderFailure> failed_;
};

}  // namespace ringbolt::sim
