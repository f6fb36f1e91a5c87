#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/adaptive_copy.h"
#include "engine/cable.h"
#include "engine/chunk_header.h"
#include "engine/chunk_slots.h"
#include "engine/device.h"
#include "engine/output_queue.h"
#include "engine/paths.h"
#include "engine/ring.h"
#include "engine/sequence.h"

namespace ringbolt::engine {

/// A received chunk's payload, in memory of the engine until Engine::release(id).
/// A value; whoever has it releases it once, or hands it on.
struct Receipt {
  uint64_t id = 0;
  std::span<const std::byte> bytes;
};

/// Who takes what arrives. Called from within progress(); may send and release.
/// Under the lock of the engine's owner. Must not call progress().
class Receiver {
 public:
  virtual ~Receiver() = default;
  /// A chunk, once. Before it returns, the receiver has released the receipt, or has called settle(), and releases what
  /// that has returned, later: the sender is told that it has come only then, and writes there again.
  virtual void on_chunk(const ChunkHeader& header, const Receipt& receipt) = 0;
  /// A word of another rank's Engine::send_word(), once. `bytes` until it returns.
  virtual void on_word(const ChunkHeader& header, std::span<const std::byte> bytes) = 0;
  /// A beat of the rank at the other end of local cable `cable`.
  virtual void on_beat(uint32_t cable, std::span<const std::byte> bytes) = 0;
  /// A local cable has failed; why is said by Cable::failure().
  virtual void on_cable_failed(uint32_t cable) = 0;
};

/// Who waits for the chunks of one call: see Engine::await().
/// Must call await_no_more() before it ends.
class Awaiting {
 public:
  /// As Receiver::on_chunk(), of such a chunk. False: it is for the receiver after all; nothing has been done with it.
  virtual bool on_awaited(const ChunkHeader& header, const Receipt& receipt) = 0;

 protected:
  ~Awaiting() = default;
};

/// Where a chunk goes and what it is.
/// A value. `via` is read during the call only.
struct Address {
  uint32_t destination = 0;
  std::span<const uint32_t> via = {};  ///< wanted path; another one is taken if it is not open
  uint16_t group = 0;
  uint16_t transfer = 0;
  uint32_t call = 0;
  uint32_t chunk = 0;
  uint32_t signature = 0;
  bool ended_before = false;  ///< see ChunkHeader
};

struct EnginePlan {
  uint32_t rank = 0;
  uint32_t n_ranks = 1;
  uint32_t session = 0;
  Checksums checksums = Checksums::carried;
  std::vector<FabricCable> fabric = {};  ///< all cables
};

/// Figures since the beginning, for reports and tests.
struct EngineCounts {
  uint64_t chunks_sent = 0;
  uint64_t chunks_received = 0;
  uint64_t resent = 0;
  uint64_t duplicates = 0;
  uint64_t relayed = 0;
  uint64_t relay_drops = 0;
  uint64_t bad_headers = 0;
  uint64_t bad_payloads = 0;
  uint64_t unprotected = 0;  ///< copies without a checksum
  uint64_t strangers = 0;    ///< sound, but of another session, connection or path
  uint64_t acks_sent = 0;
  uint64_t read_in_place = 0;  ///< of those received
};

/// Moves chunks between ranks over cables: puts them on the next cable, relays those of others, and sees to it that
/// each arrives once. UC, SEND and one region are all that it needs of a device. What a chunk means is the receiver's
/// business, and whether a cable or a rank is alive is told to it.
///
/// Not thread-safe, but for own(): its owner's lock guards it. Nothing blocks.
/// Owned by a station, whose devices, cables and slab outlive it.
class Engine {
 public:
  /// So many small slots are for words alone: what frees memory elsewhere must not wait for memory.
  static constexpr uint32_t kSlotsForWords = 64;
  /// From here on a payload has no checksum towards a neighbour that reads it where it was written.
  static constexpr uint32_t kLeastInPlaceBytes = 2048;
  /// A rank acknowledges every so many chunks of another one, and what remains after a millisecond.
  static constexpr uint32_t kReceivedPerAck = 8;
  /// Longer chunks are mostly among others: memory for the next one is wanted at once.
  static constexpr uint32_t kMostOwnedBytes = 8192;

  /// `cables` are local ones of connected devices; index i is the cable of CablePlan and RequestId. `slots` lie in the
  /// slab.
  Engine(EnginePlan plan, std::vector<std::unique_ptr<Device>>& devices, std::vector<std::unique_ptr<Cable>>& cables,
         const ChunkSlots::Rows& slots, std::span<std::byte> slab);
  /// Waits for own().
  ~Engine();
  void set_receiver(Receiver& receiver) { receiver_ = &receiver; }
  /// Chunks of that call go to `awaiting` from now on, past the receiver, until await_no_more(). Of several who wait
  /// the last one: the others' chunks go the usual way.
  void await(Awaiting& awaiting, uint16_t group, uint32_t call) { awaited_ = {&awaiting, group, call}; }
  void await_no_more(const Awaiting& awaiting) {
    if (awaited_.by == &awaiting) {
      awaited_.by = nullptr;
    }
  }

  /// Memory for a chunk of up to kLargePayloadBytes; nothing while all is in use.
  std::optional<ChunkSlots::Slot> take_slot(uint32_t length_bytes) {
    if (aside_ && ChunkSlots::size_of(aside_->id) == ChunkSlots::size_for(length_bytes) &&
        !is_owning_.load(std::memory_order_acquire)) {
      return std::exchange(aside_, std::nullopt);
    }
    return slots_.take(length_bytes, kSlotsForWords);
  }
  /// Copies that much to the beginning of a slot.
  void fill(const ChunkSlots::Slot& slot, const std::byte* from, uint32_t length_bytes);
  /// One that was taken and is not sent.
  void cancel(uint32_t slot) { slots_.free(slot); }
  /// Sets memory aside for the next chunk, if the last one was short and its neighbour reads it where it is: likely the
  /// next one is alike. The caller hands it to own(), soon: until then it serves nobody. Empty if it would not help.
  std::span<std::byte> set_slot_aside();
  /// Without the lock: writes into each line of what has been set aside, so that this core owns them again, which the
  /// neighbour has read, by the time that they are filled. That takes as long as to fill them, but nobody waits for it
  /// who does not wait for stores, as locks do: so it is the last thing that a call does.
  void own(std::span<std::byte> slot);
  /// Sends `length_bytes` of the slot to another rank. It is kept and sent again until that rank has it, or is given
  /// up.
  /// The slot is the engine's from here on. To a rank that is given up it goes nowhere.
  void send(uint32_t slot, uint32_t length_bytes, const Address& address);
  /// Sends up to kSmallPayloadBytes likewise, from memory of the caller's. Waits in memory if no slot is free.
  void send_word(std::span<const std::byte> bytes, const Address& address);
  /// A beat of a local cable, which also heals its credits: false if there is no credit or slot for it just now.
  bool send_beat(uint32_t cable, std::span<const std::byte> bytes);

  /// In any order. Of one in place its sender may write there again once the acknowledgement has come.
  void release(uint64_t receipt);
  /// For a receipt that is not released before on_chunk() returns: it moves to other memory if it lies in its sender's,
  /// or if too many receives are held. What stands for it now. Whoever kept one in its sender's memory would hold up
  /// the acknowledgement of all that follows it; and the sender, out of memory, what the receiver waits for.
  Receipt settle(const Receipt& receipt);

  /// Takes completions, serves queues and, as time goes by, acknowledges and sends again. Whether anything was done.
  bool progress(uint64_t now_ns);
  /// When progress() has something to do even if nothing arrives.
  /// Of the clock of progress(); 0: at once.
  uint64_t next_tick_ns() const { return next_tick_ns_; }

  /// A cable of EnginePlan::fabric is up or down; whether that is news. What was under way on a cable that is down is
  /// sent again.
  bool set_cable_up(uint32_t fabric_cable, bool is_up);
  /// A local cable is of no use any more until it has been connected anew.
  void fail_cable(uint32_t cable, std::string why);
  /// Makes a local cable that has failed ready to be connected anew, as Cable::reset() does. Throws base::Error.
  void reset_cable(uint32_t cable, uint16_t incarnation);
  /// Both ends are connected: it carries messages again.
  void start_cable(uint32_t cable);
  /// Nothing more is sent to that rank, and what it has not acknowledged is forgotten. `has_ended`: its process, for
  /// certain: then it reads nothing any more.
  void give_up(uint32_t rank, bool has_ended);
  const Paths& paths() const { return paths_; }
  const EngineCounts& counts() const { return counts_; }
  const std::vector<std::unique_ptr<Cable>>& cables() const { return cables_; }
  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }
  /// Something waits here for a cable's credits or for memory: it goes on with progress() alone.
  bool has_queued() const;
  /// Marks the groups ([Address::group]) of which something that was sent is not known to have come.
  void note_groups_under_way(std::vector<bool>& groups) const;
  /// Slots that hold what has not been acknowledged yet.
  size_t n_unacknowledged() const;

 private:
  /// Where a message lies that is to be sent: in a slot of ours, or in the receive that it is relayed from.
  struct Origin {
    size_t offset = 0;  // in the slab
    uint32_t send_slot = 0;
    bool is_unsequenced = false;  // its slot is free once it is sent
    bool is_relayed = false;      // then not a slot of ours, but:
    uint16_t from_cable = 0;
    uint16_t slot = 0;
    Size size = Size::small;
  };
  struct Entry {  // of an output queue
    ChunkHeader header;
    Origin origin;
  };
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  struct Unacknowledged {
    uint32_t slot = 0;
    ChunkHeader header;
    uint64_t sent_ns = 0;  // 0: before the first progress()
    uint32_t n_tries = 0;
    bool is_due = false;            // to be sent again at once: its cable has died
    uint32_t first_slot = kNoSlot;  // if `slot` is a copy: the peer may still read this one where it is
  };
  /// All that passes between this rank and another one, whatever the way.
  struct Flow {
    uint32_t next_sequence = 0;
    // By sequence, without gaps.
    Ring<Unacknowledged> unacknowledged;
    ReceivedNumbers received;
    Cable* only_rail = nullptr;  // of a neighbour with one cable
    uint64_t round_trip_ns = 0;  // smoothed, without what losses add: what waits before slow cables makes it long
    uint32_t n_to_acknowledge = 0;
    uint64_t to_acknowledge_since_ns = 0;
    bool is_given_up = false;
  };
  struct PendingWord {
    std::vector<std::byte> bytes;
    Address address;
  };
  struct Neighbour {
    std::vector<Cable*> rails;
    OutputQueue<Entry> queue;
    double turn = 0;  // of the rail that has sent last, when it began
  };

  // engine.cpp: sending
  void abandon_slot(uint32_t rank, uint32_t slot);
  void send_sequenced(Kind kind, uint32_t slot, uint32_t length_bytes, const Address& address);
  bool send_at_once(uint32_t slot, uint32_t length_bytes, const Address& address);
  [[gnu::noinline]] void send_by_any_way(uint32_t slot, uint32_t length_bytes, const Address& address);
  void choose_path(ChunkHeader& header, std::span<const uint8_t> wanted) const;
  void protect(ChunkHeader& header, size_t offset);
  bool is_read_in_place(uint32_t rank) const;
  void submit(ChunkHeader& header, const Origin& origin, uint32_t next_rank, Size size, uint32_t buffer_class);
  void enqueue(Neighbour& neighbour, const ChunkHeader& header, const Origin& origin, Size size, uint32_t buffer_class);
  bool try_send(Neighbour& neighbour, ChunkHeader& header, const Origin& origin, Size size, uint32_t buffer_class);
  void serve(Neighbour& neighbour);
  bool send_on_cable(uint32_t cable, std::span<const std::byte> first, std::span<const std::byte> second);
  void send_ack(uint32_t rank);
  void tell_credits();
  void post_freed();
  void attend();
  void send_pending_words();

  // engine_receive.cpp
  void take_completion(const ibv_wc& completion);
  [[gnu::noinline, gnu::cold]] void fail_completion(Cable& cable, const RequestId& id, ibv_wc_status status);
  bool is_ours(const RequestId& id) const;
  void take_message(Cable& cable, uint64_t wr_id, const RequestId& id, uint32_t length_bytes, const std::byte* place);
  [[gnu::noinline]] void take_beat(Cable& cable, uint32_t index, std::span<const std::byte> bytes);
  void deliver(Cable& cable, uint64_t wr_id, const RequestId& id, const ChunkHeader& header,
               std::span<const std::byte> message, bool is_in_place);
  [[gnu::noinline]] void relay(Cable& cable, const RequestId& id, ChunkHeader header);
  void hear_ack(uint32_t rank, uint32_t ack);
  void owe_ack(uint32_t rank, bool is_urgent);

  // engine_time.cpp
  void tick();
  void resend(uint32_t rank);
  bool has_slot_of_its_own(Unacknowledged& waiting);
  void notice_failures();
  void fail_device(const Device& device, int error);
  bool uses(const ChunkHeader& header, const FabricCable& cable) const;
  void forget(const Entry& entry);

  EnginePlan plan_;
  std::vector<std::unique_ptr<Device>>& devices_;
  std::vector<std::unique_ptr<Cable>>& cables_;
  std::span<std::byte> slab_;
  Receiver* receiver_ = nullptr;
  struct Awaited {
    Awaiting* by = nullptr;
    uint16_t group = 0;
    uint32_t call = 0;
  };
  Awaited awaited_;
  ChunkSlots slots_;
  base::AdaptiveCopy copier_;
  std::vector<Flow> flows_;            // [rank]
  std::vector<Neighbour> neighbours_;  // [rank]
  std::vector<bool> has_failed_;       // [local cable]
  std::deque<PendingWord> pending_words_;
  std::vector<uint32_t> ranks_to_acknowledge_;
  std::vector<std::vector<std::byte>> blocks_;  // of settled receipts
  std::vector<size_t> free_blocks_;
  Paths paths_;
  EngineCounts counts_;
  static constexpr uint32_t kMostUnattended = 4;
  uint32_t n_unattended_ = 0;  ///< times that something has come since attend()
  bool is_taking_ = false;     ///< completions: attend() will follow
  uint64_t now_ns_ = 0;
  uint64_t next_tick_ns_ = 0;
  uint32_t last_in_place_bytes_ = UINT32_MAX;  ///< of data; UINT32_MAX: the last chunk was none
  std::optional<ChunkSlots::Slot> aside_;
  // Set under the lock, cleared by own() without it: released then, so that who acquires it finds the slot filled with
  // nothing that is still to be written.
  std::atomic<bool> is_owning_ = false;
};

}  // namespace ringbolt::engine
