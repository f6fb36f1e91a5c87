#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/in_place.h"
#include "engine/cable_credit.h"
#include "engine/cable_report.h"
#include "engine/chunk_header.h"
#include "engine/device.h"
#include "engine/slots.h"
#include "verbs/queue_pair.h"

namespace ringbolt::engine {

/// Messages up to 4 KiB and those up to 64 KiB have a queue pair each, with receives of their size: some devices take a
/// message only into a receive of as many 4 KiB frames, and a beat never waits behind chunks.
enum class Size : uint8_t { small, large };
inline constexpr std::array<Size, 2> kSizes = {Size::small, Size::large};

// Receives of each queue pair of a cable, as many at both ends: they are what credits count. kKeptForControl of the
// small ones are kept for beats.
inline constexpr uint32_t kSmallReceives = 64;
inline constexpr uint32_t kLargeReceives = 32;
inline constexpr uint32_t kKeptForControl = 4;
/// Of parallel cables each is given so many large messages ahead of what its device has sent. What is not given to a
/// rail yet goes over whichever has room first, whatever its rate.
inline constexpr uint32_t kAheadOnRail = 4;

/// What a work request's wr_id says.
/// A value, in the 64 bits of a wr_id. Whatever comes back in a completion is checked: the library may be anybody's.
struct RequestId {
  bool is_receive = false;
  Size size = Size::small;
  uint16_t cable = 0;           ///< index among the engine's
  uint16_t slot = 0;            ///< of a receive: ours; of a relayed send: the receive of cable `from_cable`
  bool is_relayed = false;      ///< a send of what another cable has received
  bool is_unsequenced = false;  ///< a send from one of our slots, `slot`, that nobody acknowledges
  uint16_t from_cable = 0;
  uint8_t n_requests = 0;   ///< of a send: how many are done with this completion
  uint8_t incarnation = 0;  ///< of the cable's connection, modulo 16
  friend bool operator==(const RequestId&, const RequestId&) = default;
};
inline uint64_t emit(const RequestId& id) {
  return static_cast<uint64_t>(id.is_receive) | static_cast<uint64_t>(id.size) << 1 |
         static_cast<uint64_t>(id.is_relayed) << 2 | static_cast<uint64_t>(id.is_unsequenced) << 3 |
         static_cast<uint64_t>(id.incarnation & 15U) << 4 | static_cast<uint64_t>(id.n_requests) << 8 |
         static_cast<uint64_t>(id.slot) << 16 | static_cast<uint64_t>(id.cable) << 32 |
         static_cast<uint64_t>(id.from_cable) << 48;
}
inline RequestId parse_request(uint64_t wr_id) {
  RequestId id;
  id.is_receive = (wr_id & 1) != 0;
  id.size = static_cast<Size>((wr_id >> 1) & 1);
  id.is_relayed = (wr_id >> 2 & 1) != 0;
  id.is_unsequenced = (wr_id >> 3 & 1) != 0;
  id.incarnation = static_cast<uint8_t>(wr_id >> 4 & 15);
  id.n_requests = static_cast<uint8_t>(wr_id >> 8);
  id.slot = static_cast<uint16_t>(wr_id >> 16);
  id.cable = static_cast<uint16_t>(wr_id >> 32);
  id.from_cable = static_cast<uint16_t>(wr_id >> 48);
  return id;
}

/// What the other end of a cable needs to know.
struct CableAddress {
  ibv_gid gid = {};
  uint16_t lid = 0;
  std::array<uint32_t, 2> qp_number = {};  ///< [Size]
  std::array<uint32_t, 2> psn = {};
};

struct CablePlan {
  uint32_t peer = 0;  ///< rank at the other end
  uint8_t port = 1;
  uint8_t gid_index = 0;
  ibv_qp_type type = IBV_QPT_UC;
  ibv_mtu mtu = IBV_MTU_4096;
  uint8_t hop_limit = 1;
  bool counts_frames = false;     ///< a message must fill as many frames as the receive: it is padded
  bool may_read_in_place = true;  ///< what it receives stays where the peer has written it, if the device can do that
  double rate = 1;                ///< in any unit, the same for all cables
  uint32_t n_hop_classes = 1;
  uint32_t fabric_cable = 0;  ///< its place in EnginePlan::fabric
  std::string name;           ///< "cable 0-1 (rdma_en2 to rdma_en3)", for messages
};

/// The queue pairs of a cable while they are being connected, away from it: one thread may wait for their device, as
/// long as that takes, while others go on with what is left of the cable. The device and the slab must outlive it. Not
/// thread-safe.
/// Owns the queue pairs until Cable::end_connecting() takes them back; if it is dropped instead, they end with it.
class Connecting {
 public:
  /// To RTR and RTS. May block for good in some devices. Throws base::Error; what has been reached stays.
  void run();

 private:
  friend class Cable;
  struct End {
    std::optional<verbs::UnconnectedQueuePair> unconnected = std::nullopt;
    std::optional<verbs::QueuePair> connected = std::nullopt;
  };
  CableAddress peer_;
  bool reads_in_place_ = false;
  std::array<End, 2> ends_;  // [Size]
};

/// Our end of a cable: queue pairs, receives in the slab, and credits. Knows nothing of what messages mean. Not
/// thread-safe.
/// Owned by a station. The device and the slab must outlive it. Used under the lock of the engine's owner. Slots are
/// places in its own rows of the slab; the device may write to those that are posted, and read what was sent, until a
/// completion or a reset.
class Cable {
 public:
  /// Makes the queue pairs, up to INIT, and cuts the receives out of the slab. Throws base::Error.
  Cable(Device& device, const CablePlan& plan, uint16_t index, SlabLayout& layout);
  ~Cable();

  const CablePlan& plan() const { return plan_; }
  const Device& device() const { return device_; }
  CableAddress address(const ibv_gid& gid, uint16_t lid) const;
  /// To RTR and RTS, with all receives posted. Throws base::Error.
  void connect(const CableAddress& peer, std::span<std::byte> slab);
  /// The same in three parts, for a device that may block: the queue pairs go, with all receives posted;
  /// Connecting::run() in any thread; and they come back, whatever has become of them. Meanwhile the cable has failed
  /// and stays so, and is not reset. end_connecting() throws base::Error if the device has refused receives.
  Connecting begin_connecting(const CableAddress& peer, std::span<std::byte> slab);
  void end_connecting(Connecting&& connecting);
  /// A cable that has failed gets queue pairs without a past, up to INIT, for connection `incarnation`. What is left of
  /// sends that are relayed or unsequenced, whose completions won't come any more. To be connected when the other end
  /// has done the same, and started when that is connected, too. Receives that are held stay so, and are posted when
  /// they are free: until then the peer may send more than there is room for, which it repeats. Throws base::Error;
  /// then it can be tried again.
  std::vector<RequestId> reset(uint16_t incarnation);
  void start() { is_alive_ = true; }
  uint16_t incarnation() const { return incarnation_; }

  bool is_alive() const { return is_alive_; }
  /// What broke it; empty while it is alive.
  const std::string& failure() const { return failure_; }
  /// Nothing is sent any more, and what the device still holds comes back with completions: as long as it keeps sends
  /// for a cable that is cut, it keeps the receives that they are relayed from.
  [[gnu::noinline, gnu::cold]] void fail(std::string why);

  /// Credit and room in the device's queue, both: send() asserts neither.
  bool may_send(Size size, uint32_t buffer_class) const {
    const End& end = ends_[index(size)];
    const uint32_t depth = is_rail_ && size == Size::large ? kAheadOnRail : end.send_depth;
    return is_alive_ && end.sends_posted < depth && end.sender.may_send(buffer_class);
  }
  /// This end says from now on that it reads nothing in place.
  void copy_all() { reads_in_place_ = false; }
  /// One of several cables to its peer: see kAheadOnRail.
  void be_rail() { is_rail_ = true; }
  /// Sends the message at `offset` of the slab, which stays untouched until the completion or, for one of our own,
  /// until its acknowledgement. Fills in what the header says of this cable. Of `id` the size, the cable, is_receive,
  /// n_requests and the incarnation are not read. False if the device refuses; then the cable has failed.
  bool send(Size size, uint32_t buffer_class, ChunkHeader& header, size_t offset, const RequestId& id);
  // The same in two parts: what the next message's header is to say of this cable, which the peer hears by it; and
  // handing over the message, whose header is written.
  struct Told {
    uint16_t cable_number = 0;
    uint8_t credit_class = 0;
    uint16_t freed_small = 0;
    uint16_t freed_large = 0;
  };
  Told tell(Size size, uint32_t buffer_class);
  /// `length_bytes`: header and payload. `is_awaited`: its completion must come by itself.
  /// Behind tell(), which has taken the credit.
  bool post(Size size, size_t offset, uint32_t length_bytes, bool is_awaited, const RequestId& id);
  bool reads_in_place() const { return reads_in_place_; }
  /// The number of the last message sent, and whether the device is done with the memory of one: it has a completion of
  /// its own or of a later one, or the connection is another one by now.
  // Numbers wrap; right as long as fewer than 2^32 sends lie between.
  uint32_t serial(Size size) const { return ends_[index(size)].serial; }
  bool is_done_with(Size size, uint32_t serial) const {
    const End& end = ends_[index(size)];
    return end.serial - serial >= end.sends_posted;
  }
  /// Whether a completion is asked for that will say so: the latest short messages may have none yet.
  bool will_tell_of(Size size, uint32_t serial) const {
    const End& end = ends_[index(size)];
    return end.serial - serial >= end.n_unsignalled;
  }
  /// A send's completion has come.
  void hear_done(const RequestId& id);
  /// Whether a completion is of this connection and not of one before it.
  bool is_current(const RequestId& id) const { return id.incarnation == incarnation_ % kToldIncarnations; }
  /// Whether chunks go this way: not while the cable is thought to be down. Beats always do.
  bool is_in_use() const { return is_in_use_; }
  void set_in_use(bool is_in_use) { is_in_use_ = is_in_use; }

  /// Where the message of a receive lies in the peer's memory, which stays as it is until the peer hears that the
  /// message has been received; null: it is in the receive. What a library says of that counts only if it has agreed to
  /// it.
  const std::byte* place_of(const ibv_wc& completion) const {
    return may_be_in_place_ && (completion.wc_flags & base::kReceivedInPlace) != 0 ? base::place_in(completion)
                                                                                   : nullptr;
  }
  /// A received message's bytes; `place`: see place_of().
  std::span<const std::byte> message(Size size, uint32_t slot, uint32_t length_bytes, const std::byte* place) const;
  /// At least its header, as it was when it came; for one in place, before fetch().
  std::span<const std::byte> head(Size size, uint32_t slot, uint32_t length_bytes) const;
  /// Brings a message from there into its receive, up to `length_bytes`: where it lies now.
  std::span<const std::byte> fetch(Size size, uint32_t slot, std::span<const std::byte> message);
  bool has_receive(Size size, uint32_t slot) const { return slot < ends_[index(size)].receives.count; }
  /// Whether the peer said with its last message that it reads in place.
  bool is_read_in_place() const { return is_read_in_place_; }
  /// Whether it ever did, by this connection or an earlier one.
  bool was_read_in_place() const { return was_read_in_place_; }
  size_t offset_of(Size size, uint32_t slot) const { return ends_[index(size)].receives.offset_of(slot); }
  /// What the sound header of the message in a held receive says of this cable: false if it is of an earlier
  /// connection.
  bool hear(Size size, uint32_t slot, const ChunkHeader& header);
  /// A receive has completed: it is held until free() or repost().
  void hold(Size size, uint32_t slot) {
    End& end = ends_[index(size)];
    end.is_held[slot] = 1;
    ++end.n_held;
  }
  /// A receive that has completed with an error holds nothing, and is posted again with the next connection.
  void drop(Size size, uint32_t slot) {
    End& end = ends_[index(size)];
    end.is_held[slot] = 0;
    --end.n_held;
  }
  /// It is posted again, and the sender owed the news, together with the next few: by post_freed() at the latest.
  void free(Size size, uint32_t slot) { put_back(size, slot, ends_[index(size)].class_of[slot]); }
  /// The same without a word to the sender: its message had no sound header, or was of an earlier connection.
  void repost(Size size, uint32_t slot) { put_back(size, slot, kNotOwed); }
  /// A call of the device for each few. A refusal fails the cable.
  void post_freed();
  /// The same while the peer may soon need them, or several can be posted at once, which costs less.
  void post_freed_if_many() {
    if (has_many_freed(Size::small) || has_many_freed(Size::large)) {
      post_freed();
    }
  }

  SenderCredit& sender(Size size) { return ends_[index(size)].sender; }
  ReceiverCredit& receiver(Size size) { return ends_[index(size)].receiver; }
  /// What to say of this cable, and what the peer says. False: so much is lost that the connection must begin anew.
  // Together they heal credits: numbers that the peer has sent long ago and that never came count as lost, and their
  // credit goes back.
  CableReport report() const;
  bool hear_report(const CableReport& report, uint64_t now_ns);
  /// The peer should hear of credits soon although nothing is sent there.
  bool has_credits_to_tell() const;
  /// Receives that hold messages: of all, how many are not posted.
  uint32_t n_held(Size size) const { return ends_[index(size)].n_held; }

  /// For whoever shares messages out to rails: when this one's next is due, in units of bytes over rate.
  double turn = 0;
  // Since the beginning.
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;

 private:
  static constexpr uint32_t kReceivesPerPost = 4;
  /// Of short messages so many may wait until nothing comes, or has come several times: whoever waited for a message
  /// goes first.
  static constexpr uint32_t kMostFreed = 2 * kReceivesPerPost;
  /// For the class of a message that came after it had been counted as lost.
  static constexpr uint8_t kNotOwed = UINT8_MAX;
  struct Freed {  // a receive that is to be posted
    uint16_t slot = 0;
    uint8_t buffer_class = kNotOwed;
  };
  struct End {
    SlotRow receives;
    SenderCredit sender;
    ReceiverCredit receiver = {};
    std::optional<verbs::UnconnectedQueuePair> unconnected = std::nullopt;
    std::optional<verbs::QueuePair> connected = std::nullopt;
    uint32_t qp_number = 0;
    std::vector<uint8_t> class_of = {};            // [slot], of the message in a held receive
    std::vector<uint8_t> is_held = {};             // [slot]: 1 or 0
    std::array<Freed, kSmallReceives> freed = {};  // as many as there can be of either size
    uint32_t n_freed = 0;
    uint32_t send_depth = 0;
    uint32_t sends_posted = 0;  // and not known to be done
    uint32_t serial = 0;        // of the last one
    uint32_t n_held = 0;
    uint32_t n_unsignalled = 0;
    // Relayed and unsequenced sends, which complete in order: a ring of send_depth.
    std::vector<RequestId> in_flight = {};
    // Of the message that is being posted: what stays the same is written once.
    ibv_send_wr request = {};
    ibv_sge piece = {};
    uint32_t first_in_flight = 0;
    uint32_t n_in_flight = 0;
    // As a report has said that is kBelatedNs old by the time it counts.
    uint32_t sent_by_peer = 0;
    uint64_t sent_by_peer_ns = 0;
  };
  bool has_many_freed(Size size) const {
    const End& end = ends_[index(size)];
    return end.n_freed >= kReceivesPerPost || (end.n_freed > 0 && end.n_freed + end.n_held > end.receives.count / 8);
  }
  static size_t index(Size size) { return static_cast<size_t>(size); }
  static constexpr uint16_t kFirstIncarnation = 1;
  static constexpr uint16_t kToldIncarnations = 16;
  // Apart from what is compiled into hot functions.
  [[gnu::noinline, gnu::cold]] void fail_call(const char* call, int error);
  [[gnu::noinline, gnu::cold]] void fail_dishonest(uint32_t credit_class);
  void make_end(Size size, SlabLayout& layout);
  verbs::Path path() const;
  void reset_queue_pairs();
  void put_back(Size size, uint32_t slot, uint8_t buffer_class);
  void post_receives(Size size, std::span<const Freed> receives);

  Device& device_;
  CablePlan plan_;
  uint16_t index_;
  std::span<std::byte> slab_;
  std::vector<End> ends_;  // [Size]
  uint16_t incarnation_ = kFirstIncarnation;
  uint32_t told_class_ = 0;  // the last one
  bool is_alive_ = false;
  bool is_in_use_ = true;
  bool is_rail_ = false;
  bool may_be_in_place_ = false;  // the library has agreed to it, for all queue pairs of the connection
  bool reads_in_place_ = false;
  bool is_read_in_place_ = false;
  bool was_read_in_place_ = false;
  std::string failure_;
};

}  // namespace ringbolt::engine
