#pragma once

// Hot path: post(), is_done() and progress() do not allocate, wait, or make system calls of their own.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "circuit/circuit.h"
#include "circuit/clearances.h"
#include "circuit/frame_header.h"
#include "circuit/rail.h"
#include "circuit/registrations.h"
#include "circuit/repeats.h"

namespace ringbolt::circuit {

/// Messages that a sender has accepted and not copied yet, at most.
inline constexpr uint32_t kMostSends = 256;

/// A message to be sent. Under the circuit's lock, but for what take_if_done() looks at.
struct Send : Request {
  const std::byte* data = nullptr;
  size_t size = 0;
  size_t n_copied = 0;
  int32_t tag = 0;
  uint32_t message = 0;
  std::atomic<bool> is_done = false;  ///< nothing of it is looked at any more, nor its memory
  std::atomic<bool> is_free = true;   ///< given back by who posted it
  bool is_direct = false;             ///< what is left of it is to be written, where its receive allows that
  uint32_t n_open = 0;                ///< pieces that need its memory
};

/// The sender's end. Messages are copied into slots, one frame each, which go over whichever rail will have sent them
/// first, and stay until the receiver has taken them: what was under way on a rail that fails goes by another one. So a
/// send is done, and its memory the caller's again, once it is copied.
///
/// Where both ends may, long messages from registered memory are written into the receiver's instead
/// (send_direct.cpp): a piece is a WRITE and a frame that says so, with a slot for its header alone. Such a send is
/// done when all its pieces have been taken.
///
/// On a rail that may lose frames (UC) each has a number, the receiver says which have come, and what has not is sent
/// again (send_lossy.cpp). A rail by which nothing comes any more fails like any other, and what was under way goes
/// elsewhere. Slots, requests and rails are bounded, so a peer that takes nothing stops the program's sends, and
/// costs no memory.
class SendCircuit final : public Circuit {
 public:
  /// `slots`: frames under way on all rails together. The memory is that of the device behind `port`; other devices
  /// register it too. `least_written_bytes`: of messages that may be written; 0: none. Throws base::Error. `n_slots`:
  /// below 2^16.
  SendCircuit(CircuitId id, MemberId peer, std::string peer_name, bool has_checksums,
              std::shared_ptr<const Devices> devices, uint16_t port, uint32_t n_slots,
              uint64_t least_written_bytes = 0);

  /// Null: not now, there is no room. `data` stays untouched until the send is done. `registered`: the memory that it
  /// lies in, or null. Null is no failure. After a failure the send is accepted and never done: ask failure().
  Send* post(const void* data, size_t size, int32_t tag, const Registered* registered = nullptr)
      RINGBOLT_REQUIRES(lock);
  /// Whether it is done; then it is given back.
  bool is_done(Send& send) RINGBOLT_REQUIRES(lock);
  /// Likewise, without a look at what has happened meanwhile: short messages are done when they are posted. Needs no
  /// lock: the acquire sees all that was done with it, and the release of `is_free` is acquired before it is used anew.
  static bool take_if_done(Send& send) {
    if (!send.is_done.load(std::memory_order_acquire)) {
      return false;
    }
    send.is_free.store(true, std::memory_order_release);
    return true;
  }

  /// What has been copied is still delivered; but what lies in the program's memory fails the circuit.
  void abandon() override RINGBOLT_REQUIRES(lock) {
    n_waiting_ = 0;
    set_awaited(false);
    if (n_open_ > 0) {
      fail(FailureKind::usage, "the sender has closed the connection while it was sending");
    }
  }
  void progress() override RINGBOLT_REQUIRES(lock);
  void progress_idle() override RINGBOLT_REQUIRES(lock) { progress(); }

  /// What rails send from: RailPlan::sends.
  std::span<std::byte> slots() const { return slots_.bytes(); }

  // For the endpoint's thread.
  /// A rail that is connected: greets over it. `may_lose`: one of its hops is UC.
  void add_rail(uint16_t number, std::unique_ptr<Rail> rail, Path path, uint32_t rate_mbps, bool may_lose = false)
      RINGBOLT_REQUIRES(lock);
  /// A rail is of no use any more: what was under way on it goes by others.
  void fail_rail(uint16_t number, const std::string& why) RINGBOLT_REQUIRES(lock);
  /// Nothing more is put on it; it is gone once what is under way has been taken.
  void retire_rail(uint16_t number) RINGBOLT_REQUIRES(lock);
  /// Takes out the rails that have failed or retired, for their destruction without the lock; of UC forget_rail()
  /// follows.
  struct Ended {
    uint16_t number = 0;
    Path path;
    std::unique_ptr<Rail> rail;
    bool was_silent = false;  ///< frames were sent again and again, and nothing was heard
    uint64_t n_repeated = 0;  ///< frames that were sent again by it
  };
  std::vector<Ended> take_ended() RINGBOLT_REQUIRES(lock);
  /// A rail of UC that take_ended() has given is destroyed: what was under way on it goes by others from now on, for
  /// until now its device might read it.
  void forget_rail(uint16_t number) RINGBOLT_REQUIRES(lock);
  struct RailView {
    uint16_t number = 0;
    const Path* path = nullptr;
    bool is_live = false;  ///< greeted
    bool is_retiring = false;
    const Rail* rail = nullptr;
  };
  /// Without those that have failed. The pointers are good as long as the lock is held.
  std::vector<RailView> rails() const RINGBOLT_REQUIRES(lock);
  /// Something is not known to have been taken.
  bool has_unfinished() const RINGBOLT_REQUIRES(lock) { return n_free_ < n_slots_ || n_waiting_ > 0; }
  /// Messages that have been written, at least in part. For tests.
  uint64_t n_written() const RINGBOLT_REQUIRES(lock) { return n_written_; }
  /// Frames that have been sent again on the rail that lost them. For tests.
  uint64_t n_repeated() const RINGBOLT_REQUIRES(lock) { return n_repeated_; }

 private:
  /// Greetings lie behind the slots, each at a place of its own as long as its rail is there: a device may read them
  /// later, and on UC they are sent again.
  static constexpr size_t kGreetings = 64;

  /// Frames that may be ahead of the oldest one that is not taken: the receiver holds 512 without a receive, and tells
  /// 1024 from old ones (arrivals.h).
  static constexpr uint32_t kMostAhead = 384;

  struct OnRail {
    uint16_t number = 0;
    size_t greeting = 0;         // its place
    std::unique_ptr<Rail> rail;  // null: it is being ended
    Path path;
    // Mb/s; 1 where it is not known, so such rails share alike.
    double rate = 1;
    bool is_live = false;
    bool is_retiring = false;
    bool has_failed = false;
    bool was_silent = false;
    std::unique_ptr<Repeats> repeats;       // null: it loses nothing
    uint64_t full_ns = 0;                   // since when no send completes, though no more can be posted; 0: some can
    uint32_t n_sent = 0;                    // data frames
    uint32_t n_taken = 0;                   // of these
    uint64_t bytes = 0;                     // under way
    std::array<uint16_t, kWindow> slots{};  // [n % kWindow]: of frame n
  };

  /// Where a slot's payload lies; its header ends there.
  std::byte* payload(uint16_t slot) const {
    return slots_.bytes().data() + size_t{slot} * kSlotBytes + kFrameHeaderBytes;
  }
  /// The rail that will have sent `length` more bytes first, of those with room of which `may_use` is true; null: there
  /// is none.
  template <class MayUse>
  OnRail* pick_of(uint32_t length, MayUse may_use) {
    const auto time = [length](const OnRail& rail) { return static_cast<double>(rail.bytes + length) / rail.rate; };
    OnRail* best = nullptr;
    for (OnRail& rail : rails_) {
      if (!rail.is_live || rail.is_retiring || rail.n_sent - rail.n_taken >= kWindow || !may_use(rail)) {
        continue;
      }
      if (best == nullptr || time(rail) < time(*best)) {
        best = &rail;
      }
    }
    return best;
  }
  OnRail* pick(uint32_t length);
  void pump() RINGBOLT_REQUIRES(lock);
  void put(OnRail& rail, uint16_t slot) RINGBOLT_REQUIRES(lock);
  void hear(OnRail& rail, const Rail::Received& received) RINGBOLT_REQUIRES(lock);
  void hear_taken(OnRail& rail, uint32_t n_taken) RINGBOLT_REQUIRES(lock);
  void drop(OnRail& rail) RINGBOLT_REQUIRES(lock);
  void move_on(OnRail& rail) RINGBOLT_REQUIRES(lock);

  std::byte* greeting_of(const OnRail& rail) const {
    return slots_.bytes().data() + n_slots_ * kSlotBytes + rail.greeting * kFrameHeaderBytes;
  }
  std::optional<size_t> take_greeting() RINGBOLT_REQUIRES(lock);
  void free_taken(uint16_t slot) RINGBOLT_REQUIRES(lock);
  /// Whether new frames may go: not when an old one has been missing for so many that the receiver could not hold them.
  bool may_go_on() RINGBOLT_REQUIRES(lock) { return next_sequence_ - first_untaken_ < kMostAhead || find_untaken(); }
  bool find_untaken() RINGBOLT_REQUIRES(lock);

  // send_lossy.cpp:
  /// Of a slot whose frame was sent again: the device still reads it so many times, and it may be taken before that.
  struct Repeated {
    uint32_t n_reading = 0;
    bool is_taken = false;
  };
  static constexpr uint32_t kRepeatCookie = 1U << 16U;  // and the slot
  uint32_t put_numbered(OnRail& rail, uint16_t slot) RINGBOLT_REQUIRES(lock);
  void repeat(OnRail& rail) RINGBOLT_REQUIRES(lock);
  void give_up(OnRail& rail, const std::string& what) RINGBOLT_REQUIRES(lock);
  void hear_lossy(OnRail& rail, const FrameHeader& header) RINGBOLT_REQUIRES(lock);
  void note_repeat_done(uint16_t slot) RINGBOLT_REQUIRES(lock);
  void end_repeats(const OnRail& rail) RINGBOLT_REQUIRES(lock);

  // send_direct.cpp:
  /// What is known of a message that is to be written: [message % kMostSends].
  struct Direct {
    std::array<std::optional<uint32_t>, kMostDevices> keys{};  // of its memory
    Target target;
    bool has_target = false;
  };
  /// Of a slot.
  struct Piece {
    bool is_open = false;  // its send awaits it
    bool is_taken = false;
    bool is_completed = false;  // of the WRITE and its frame
  };
  enum class Started : uint8_t { waits, by_frames, all };
  Started start_direct(Send& send) RINGBOLT_REQUIRES(lock);
  bool find_target(Send& send, Direct& direct) RINGBOLT_REQUIRES(lock);
  bool can_write(const OnRail& rail, const Direct& direct) const;
  bool has_way_to_write(const Direct& direct) const;
  bool has_direct_rail() const;
  OnRail* pick_to_write(const Direct& direct, uint32_t length);
  void write(OnRail& rail, uint16_t slot) RINGBOLT_REQUIRES(lock);
  bool copy_instead(uint16_t slot) RINGBOLT_REQUIRES(lock);
  void copy_piece(uint16_t slot) RINGBOLT_REQUIRES(lock);
  void send_rest() RINGBOLT_REQUIRES(lock);
  void note_taken(uint16_t slot) RINGBOLT_REQUIRES(lock);
  void note_completed(uint32_t cookie) RINGBOLT_REQUIRES(lock);
  void close_piece(uint16_t slot) RINGBOLT_REQUIRES(lock);
  void note_dropped(const OnRail& rail) RINGBOLT_REQUIRES(lock);
  void hear_clear_to_send(const Rail::Received& received, const FrameHeader& header) RINGBOLT_REQUIRES(lock);
  void let_go() override RINGBOLT_REQUIRES(lock);
  Direct& direct_of(uint32_t message) { return directs_[message % kMostSends]; }

  // Before slots_, which is registered with them.
  const std::shared_ptr<const Devices> devices_;
  const uint32_t n_slots_;
  verbs::Slab slots_;
  std::vector<FrameHeader> headers_;  // [slot]
  std::vector<uint16_t> free_slots_;  // the first n_free_
  uint32_t n_free_ = 0;
  // Slots that no rail has: in the order in which they are to go, the last one first.
  std::vector<uint16_t> again_;  // slots of frames to be sent again, the first n_again_, newest first
  uint32_t n_again_ = 0;
  std::vector<Repeated> repeated_;  // [slot]
  uint64_t n_repeated_ = 0;
  uint32_t n_silent_ = 0;  // rails that fell silent, since a frame was taken for the last time
  std::vector<OnRail> rails_;
  size_t next_greeting_ = 0;
  std::array<Send, kMostSends> sends_;
  uint32_t first_waiting_ = 0;  // place of the oldest one that is not copied
  uint32_t n_waiting_ = 0;
  uint32_t next_message_ = 0;
  uint32_t next_sequence_ = 0;
  uint32_t first_untaken_ = 0;  // all before it are taken; some more may be

  // Where long messages may be written; else there is nothing in these.
  const uint64_t least_written_bytes_;
  std::unique_ptr<Clearances> clearances_;
  std::unique_ptr<ClearToSend> clear_to_send_;  // that is being read
  std::vector<Direct> directs_;
  std::vector<Piece> pieces_;      // [slot]
  std::vector<FrameHeader> rest_;  // of pieces that were to be written and go by frames: what is left of them
  uint32_t next_begin_ = 0;        // message that clearances_ does not know of
  uint64_t begun_ns_ = 0;          // when the last one that it knows of came first
  uint32_t n_open_ = 0;            // pieces of all sends
  uint64_t n_written_ = 0;
  uint16_t most_rail_ = 0;
};

}  // namespace ringbolt::circuit
