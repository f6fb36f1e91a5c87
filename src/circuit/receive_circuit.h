#pragma once

// Hot path: post(), is_done() and progress() do not wait, or make system calls of their own, and allocate nothing but
// what a message of another tag holds up (set_aside()).

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "circuit/arrivals.h"
#include "circuit/circuit.h"
#include "circuit/clearing.h"
#include "circuit/frame_header.h"
#include "circuit/rail.h"
#include "circuit/receive_queue.h"
#include "circuit/repeats.h"

namespace ringbolt::circuit {

/// The receiver's end. Frames come over any rail, in any order and some of them twice; each is copied to its place in
/// the buffer of its message, once, in such a way that a GPU may watch (line_copy.h). A frame for which no receive has
/// been posted stays where it is, so that its sender runs out of slots and waits. Where both ends may, senders are
/// told of long receives whose memory is registered and write to it themselves; frames then say what has been written
/// (receive_direct.cpp). Of a message the frames may come before those of the one before; memory for what waits is
/// bounded by held_ and kMostAsideBytes.
class ReceiveCircuit final : public Circuit {
 public:
  /// `least_written_bytes`: of receives that the sender is told of; 0: none. Throws base::Error.
  ReceiveCircuit(CircuitId id, MemberId peer, std::string peer_name, bool has_checksums,
                 std::shared_ptr<const Devices> devices, uint16_t port, uint64_t least_written_bytes = 0);

  /// Posts a receive of up to kMostParts buffers (`n` of them, not 0). `registered`: of each, null where it is not; or
  /// null. Null: too many are posted. `data`, `capacities`, `tags`: [n]; copied. The memory belongs to the circuit
  /// until the receive is done or failure() is set. Null is no failure: ask again. After a failure it posts all the
  /// same, and nothing comes.
  Receive* post(uint32_t n, void* const* data, const size_t* capacities, const int* tags,
                const Registered* const* registered = nullptr) RINGBOLT_REQUIRES(lock);
  /// Whether it is done; then its lengths are read, and it is given back by pop(). Only of the oldest receive can it
  /// be true.
  bool is_done(const Receive& receive) RINGBOLT_REQUIRES(lock);
  void pop() RINGBOLT_REQUIRES(lock) {
    queue_.pop();
    set_awaited(!queue_.is_empty());
  }

  /// Once this returns nothing is written to the program's memory any more.
  void abandon() override RINGBOLT_REQUIRES(lock) {
    fail(FailureKind::usage, "the receiver has closed the connection");
    is_abandoned_ = true;
    set_awaited(false);
  }
  void progress() override RINGBOLT_REQUIRES(lock);
  /// Also tells the sender of the last few frames.
  void progress_idle() override RINGBOLT_REQUIRES(lock);

  // What rails send from (RailPlan::sends).
  std::span<std::byte> answers() const { return answers_.bytes(); }

  // For the endpoint's thread.
  /// A rail that is connected. Owned from here on. It may be that the circuit has failed, or that there are more rails
  /// than a sender has: then the rail fails at once.
  void add_rail(uint16_t number, std::unique_ptr<Rail> rail, Path path) RINGBOLT_REQUIRES(lock);
  /// Of a rail that is not known (any more) nothing happens.
  void fail_rail(uint16_t number, const std::string& why) RINGBOLT_REQUIRES(lock);
  struct Ended {
    uint16_t number = 0;
    Path path;
    std::unique_ptr<Rail> rail;
  };
  /// Takes out the rails that have failed and hold nothing any more. For their destruction without the lock, which
  /// may take long. Those that hold frames that wait for a receive stay, since these lie in their memory.
  std::vector<Ended> take_ended() RINGBOLT_REQUIRES(lock);
  struct RailView {
    uint16_t number = 0;
    const Path* path = nullptr;
    const Rail* rail = nullptr;
  };
  /// The pointers are good as long as the lock is held.
  std::vector<RailView> rails() const RINGBOLT_REQUIRES(lock);
  /// The sender has closed its end, or is gone: what is here already is still handed over.
  void end_of_sender(const std::string& why) RINGBOLT_REQUIRES(lock) { end_of_sender_ = why; }

 private:
  // Places for answers of one rail, in turn: as many as it can have sends under way (RailPlan::send_depth).
  static constexpr uint32_t kAnswers = 32;
  /// A ring of places for each rail: for twice as many as a sender has at a time, since old ones may go late.
  static constexpr uint32_t kAnswerRings = 2 * kMostRails;
  /// The sender is told of so many frames, of so many bytes, when there is nothing else to do, and of more at once:
  /// short frames cost less than an answer.
  static constexpr uint32_t kTakenPerAnswer = 4;
  static constexpr uint64_t kBytesPerAnswer = kTakenPerAnswer * 4096;
  static constexpr uint32_t kMostUntold = 8;
  // More than kMostAhead frames of a sender, of which each begins one message at most.
  static constexpr uint32_t kMostMessages = 512;
  // Beyond, a frame that waits holds up its rail.
  static constexpr size_t kMostAsideBytes = size_t{64} << 20U;

  // Counters wrap around after 2^32; at most kWindow lie between n_taken and n_received.
  struct OnRail {
    uint16_t number = 0;
    std::unique_ptr<Rail> rail;
    Path path;
    bool is_greeted = false;
    bool has_failed = false;  // then the rail says so, too: nothing can be written by it
    uint32_t n_received = 0;  // data frames
    uint32_t n_taken = 0;     // of these, without a gap
    uint32_t n_told = 0;
    uint64_t untold_bytes = 0;
    uint32_t answer_ring = 0;  // its own: no other rail that may still send has it
    uint32_t n_answers = 0;
    std::array<bool, kWindow> is_taken{};  // [n % kWindow]
    // Of a rail that may lose frames, which have their numbers from the sender. n_received is one more than the
    // highest.
    bool may_lose = false;
    bool owes_word = false;  // the sender does not know all that has come, or asks for it
    uint32_t n_unsaid = 0;   // frames since the last word
    Come come;
  };
  /// A frame that has come before its receive.
  struct Held {
    uint16_t rail = 0;
    uint32_t number = 0;  // among its rail's
    uint32_t slot = 0;
    bool has_slot = true;
    FrameHeader header;
    // In the rail's receive, in the sender's memory (Rail::Received), or in `aside`.
    const std::byte* payload = nullptr;
    std::unique_ptr<std::byte[]> aside;
  };
  struct Message {
    enum class Stage : uint8_t { none, unmatched, matched };
    Stage stage = Stage::none;
    uint32_t number = 0;
    int32_t tag = 0;
    size_t total = 0;
    size_t n_received = 0;
    ReceiveQueue::Place place;
    bool has_written = false;  // its sender awaits that all of it is taken
  };

  OnRail* find(uint16_t number);
  void hear(OnRail& rail, const Rail::Received& received) RINGBOLT_REQUIRES(lock);
  bool take_next_whole(OnRail& rail, const Rail::Received& received) RINGBOLT_REQUIRES(lock);
  void hear_data(OnRail& rail, const Rail::Received& received, const FrameHeader& header) RINGBOLT_REQUIRES(lock);
  bool match(Message& message) RINGBOLT_REQUIRES(lock);
  bool deliver(const FrameHeader& header, const std::byte* payload) RINGBOLT_REQUIRES(lock);
  void take(OnRail& rail, uint32_t number, uint32_t slot, bool has_slot) RINGBOLT_REQUIRES(lock);
  void deliver_held() RINGBOLT_REQUIRES(lock);
  void copy_aside(Held& held) RINGBOLT_REQUIRES(lock);
  void set_aside(OnRail& rail) RINGBOLT_REQUIRES(lock);
  void make_way() RINGBOLT_REQUIRES(lock);
  void save_from_repetition(uint32_t sequence) RINGBOLT_REQUIRES(lock);

  // receive_answers.cpp:
  std::optional<uint32_t> take_answer_ring() RINGBOLT_REQUIRES(lock);
  void tell_taken(OnRail& rail) RINGBOLT_REQUIRES(lock);
  void answer(OnRail& rail, FrameKind kind) RINGBOLT_REQUIRES(lock);

  // receive_lossy.cpp:
  std::optional<uint32_t> number_of(OnRail& rail, const Rail::Received& received, const FrameHeader& header)
      RINGBOLT_REQUIRES(lock);
  bool is_spoilt(const FrameHeader& header, const std::byte* payload) const;

  // receive_direct.cpp:
  std::optional<uint32_t> base() const RINGBOLT_REQUIRES(lock);
  void tell_clearances() RINGBOLT_REQUIRES(lock);
  OnRail* rail_for_clear_to_send() RINGBOLT_REQUIRES(lock);
  void end_tried(const OnRail& rail, uint16_t number) RINGBOLT_REQUIRES(lock);
  bool check_written(const Message& of, const FrameHeader& header) RINGBOLT_REQUIRES(lock);
  void tell_owed() RINGBOLT_REQUIRES(lock);
  void let_go() override RINGBOLT_REQUIRES(lock);
  Message& message(uint32_t number) { return messages_[number % kMostMessages]; }

  static constexpr size_t kClearToSendAt = kAnswerRings * kAnswers * kFrameHeaderBytes;
  /// Twice as many as may be under way: those of a rail that has failed may still be read.
  static constexpr uint32_t kClearToSendPlaces = 2 * Clearing::kMostFrames;

  // Before the memory that is registered with them, so destroyed after it.
  const std::shared_ptr<const Devices> devices_;
  verbs::Slab answers_;  // and clearances, behind them
  // Not added to within progress(): its loops hold references.
  std::vector<OnRail> rails_;
  uint32_t next_answer_ring_ = 0;
  std::vector<Held> held_;
  size_t aside_bytes_ = 0;
  Arrivals arrivals_;
  ReceiveQueue queue_;
  // [number % kMostMessages]
  std::array<Message, kMostMessages> messages_;
  uint32_t first_unmatched_ = 0;        // all messages before it are matched
  uint32_t next_message_ = 0;           // all before it have begun
  std::unique_ptr<Clearing> clearing_;  // null: nobody writes
  std::optional<uint16_t> clear_to_send_rail_;
  uint32_t n_clear_to_send_ = 0;
  bool owes_ = false;  // a message that was written is all there: its sender is told at once
  std::optional<std::string> end_of_sender_;
  bool is_abandoned_ = false;
};

}  // namespace ringbolt::circuit
