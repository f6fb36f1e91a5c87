#pragma once

// Hot path: polling, posting and arming allocate nothing and make no call into the system but what the device makes.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "stream/control_message.h"
#include "stream/memory_budget.h"
#include "stream/protocol.h"
#include "stream/settings.h"
#include "verbs/cm_objects.h"
#include "verbs/objects.h"
#include "verbs/slab.h"

namespace ringbolt::stream {

/// What a finished request was.
struct Finished {
  enum class Kind : uint8_t { receive, command, write, fence };
  Kind kind = Kind::receive;
  uint32_t slot = 0;    ///< of a receive: where a command lies
  uint64_t number = 0;  ///< of a write or fence: all writes up to this one are done
};

/// The verbs objects of one connection: a protection domain of its own, so that no key works from another connection,
/// one completion queue for all, 1024 receives that are posted before the connection is asked for, and the buffers.
/// What it makes ends in the order that cards want: queue pair, completion queue, channel, regions, domain. Not
/// thread-safe.
/// `budget` and the identifier outlive it. Keys are the device's: the peer knows that of the receive buffers alone.
class Endpoint {
 public:
  static constexpr uint32_t kReceives = 1024;
  static constexpr uint32_t kRepostAt = 64;  // receives that are posted together

  /// On an identifier whose device is known, which outlives this. Throws base::Error; ENOBUFS if the budget does not
  /// allow the receive buffers.
  Endpoint(const verbs::ConnectionManager& manager, rdma_cm_id* id, const StreamSettings& settings,
           MemoryBudget& budget);

  const std::string& device() const { return context_.device(); }
  int channel_fd() const { return channel_.fd(); }

  /// Up to room.size() completions. Never blocks.
  base::Result<size_t> poll(std::span<ibv_wc> room) const noexcept { return cq_.poll(room); }
  static Finished finished(const ibv_wc& completion);
  /// The command in a slot, as long as its completion said: at most kControlBytes are looked at.
  /// In memory that the device writes: good until give_back() posts the slot again.
  std::span<const std::byte> command(uint32_t slot, uint32_t length) const;
  /// The slot's receive was taken and is to be posted again; done for many at a time, or all at once by repost(). 0 or
  /// an errno.
  /// Each slot once for each completion: then what is kept here never exceeds kRepostAt.
  int give_back(uint32_t slot);
  int repost();

  int post_command(const OutgoingCommand& command);
  /// From the sending buffer, or from the program's own memory: `data` lies there.
  int post_write(const Write& write, const std::byte* data, uint32_t local_key);
  /// A write of no bytes, which the peer does not notice: completes when all before it have.
  int post_fence(uint64_t writes_before);

  std::span<std::byte> rx() const { return rx_memory_; }
  uint32_t rx_key() const { return rx_region_->remote_key(); }
  /// Memory to copy into before it is sent. ENOBUFS: the budget does not allow it; ENOMEM.
  /// Once; `length` is the peer's word, which the protocol has bounded (max_send_bytes).
  base::Result<void> make_tx(uint32_t length);
  std::span<std::byte> tx() const { return tx_memory_->bytes(); }
  uint32_t tx_key() const { return tx_region_->local_key(); }

  /// Memory of the program's own to send from. Throws base::Error.
  /// No effect where a registration begins there already.
  void register_memory(std::span<std::byte> memory);
  /// False: no registration begins there.
  bool unregister_memory(const std::byte* begin) { return own_.erase(begin) != 0; }
  /// The local key of a piece, if all of it lies in one registration.
  std::optional<uint32_t> key_of(std::span<const std::byte> piece) const;

  /// Makes the next completion an event of the channel; poll once more afterwards.
  int arm() const { return cq_.arm(); }
  /// Takes the event of the last arm(): there is never more than one. Whether it was there. Does not block.
  bool take_event();

 private:
  /// The identifier's queue pair, destroyed with this.
  struct DestroyQueuePair {
    std::shared_ptr<const verbs::CmCalls> calls;
    void operator()(rdma_cm_id* id) const { calls->destroy_qp(id); }
  };
  void make_queue_pair(const verbs::ConnectionManager& manager, rdma_cm_id* id);
  void make_buffers(const StreamSettings& settings, MemoryBudget& budget);
  int post(ibv_send_wr& request) const;

  verbs::Context context_;
  verbs::ProtectionDomain pd_;
  verbs::Slab commands_;  // kReceives places to receive into, then those to send from
  verbs::MemoryRegion commands_region_;
  // not owned
  MemoryBudget* budget_;
  Reservation rx_reserved_, tx_reserved_;
  std::optional<verbs::Slab> rx_slab_;  // none if the program brings its own
  std::span<std::byte> rx_memory_;
  std::optional<verbs::MemoryRegion> rx_region_;
  std::optional<verbs::Slab> tx_memory_;
  std::optional<verbs::MemoryRegion> tx_region_;
  std::map<const std::byte*, verbs::MemoryRegion> own_;  // by where they begin
  verbs::CompletionChannel channel_;
  verbs::CompletionQueue cq_;
  std::unique_ptr<rdma_cm_id, DestroyQueuePair> qp_;
  ibv_sge write_piece_{};
  ibv_send_wr write_request_{};              // what all writes have in common
  std::array<uint32_t, kRepostAt> taken_{};  // slots to post again
  uint32_t n_taken_ = 0;
};

}  // namespace ringbolt::stream
