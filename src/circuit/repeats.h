#pragma once

// Hot path: nothing here allocates, locks, waits or asks for the time.

#include <array>
#include <cstdint>

#include "circuit/circuit.h"

namespace ringbolt::circuit {

/// Of a rail that may lose frames without a word, as UC does: which of its frames are known to have come, and what is
/// to be sent again. Frames overtake none on a rail, so what was sent before one that has come, and has not come, is
/// lost. What is lost at the end of all, or whose answer is lost, is asked for by time. Time is an argument. Pure; not
/// thread-safe. Owned by its rail in the send circuit, under the circuit's lock. All times are base::now_ns(),
/// rising.
class Repeats {
 public:
  /// Without any news a frame is sent again after this, then after twice as long each time: seven tries within half a
  /// second, like a queue pair of RC (rail.cpp). A peer that lives answers sooner even where its program does not ask:
  /// its endpoint's thread looks every 20 ms.
  static constexpr uint64_t kFirstWaitNs = 4'000'000;
  // 4 + 8 + ... + 512 ms: after a second without any news the rail is given up.
  static constexpr uint32_t kMostTries = 7;
  /// So long nothing is heard, though frames are not taken, before the receiver is asked: the word that they are may be
  /// lost.
  static constexpr uint64_t kAskNs = 50'000'000;
  /// Likewise where nothing is under way: some devices over Thunderbolt fall silent for seconds, or for good, when a
  /// queue pair has no traffic.
  static constexpr uint64_t kKeepWarmNs = 2'000'000'000;

  /// A hello has been sent.
  void note_greeting(uint64_t now_ns) {
    awaits_greeting_ = true;
    begin_wait(now_ns);
  }
  /// The next frame has been sent for the first time. Not while kWindow of them are not taken.
  void note_sent(uint64_t now_ns) {
    const bool has_waited = has_missing();
    frames_[n_sent_ % kWindow] = {n_posts_++, false, false};
    ++n_sent_;
    if (!has_waited) {
      begin_wait(now_ns);
    }
  }

  void hear_greeting(uint64_t now_ns) {
    awaits_greeting_ = false;
    heard_ns_ = now_ns;
    begin_wait(now_ns);
  }
  /// The receiver has taken all before `taken`, of those that have been sent, and bit i of `come` says that frame
  /// `taken` + i has come. What is older than what was heard before changes nothing. Numbers are the rail's. Also of
  /// a rail whose answers overtake each other: they only ever add.
  void hear(uint32_t taken, uint32_t come, uint64_t now_ns);

  enum class What : uint8_t { nothing, greeting, frame, give_up };
  struct Due {
    What what = What::nothing;
    uint32_t number = 0;  ///< of a frame
  };
  /// What is to be sent now; it counts as sent. Call it until there is nothing. `give_up`: `number` is the frame that
  /// does not come, or n_sent for a greeting; the rail has to be ended.
  Due take_due(uint64_t now_ns);

  uint32_t n_tries() const { return n_tries_; }
  /// Since when nothing new has been heard.
  uint64_t waits_since_ns() const { return waits_since_ns_; }
  uint64_t n_repeated() const { return n_repeated_; }

 private:
  struct Frame {
    uint32_t post = 0;  // its place among all posts, the last time
    bool has_come = false;
    bool is_lost = false;  // and is sent again at once
  };
  Frame& frame(uint32_t number) { return frames_[number % kWindow]; }
  const Frame& frame(uint32_t number) const { return frames_[number % kWindow]; }
  // At most kWindow looks.
  bool has_missing() const {
    for (uint32_t n = n_taken_; n != n_sent_; ++n) {
      if (!frame(n).has_come) {
        return true;
      }
    }
    return awaits_greeting_;
  }
  void begin_wait(uint64_t now_ns) {
    n_tries_ = 0;
    waits_since_ns_ = now_ns;
    deadline_ns_ = now_ns + kFirstWaitNs;
    // 0: nothing has been heard yet, so silence counts from the first wait.
    heard_ns_ = heard_ns_ == 0 ? now_ns : heard_ns_;
  }
  Due repeat(uint32_t number) {
    frame(number).is_lost = false;
    frame(number).post = n_posts_++;
    ++n_repeated_;
    return {What::frame, number};
  }

  std::array<Frame, kWindow> frames_{};  // [number % kWindow]
  uint32_t n_sent_ = 0;
  uint32_t n_taken_ = 0;
  uint32_t n_posts_ = 0;
  uint32_t n_tries_ = 0;
  bool awaits_greeting_ = false;
  uint64_t waits_since_ns_ = 0;
  uint64_t deadline_ns_ = 0;
  uint64_t heard_ns_ = 0;  // any answer
  uint64_t n_repeated_ = 0;
};

/// The same rail's other end: which frames have come, so that none counts twice. Pure; not thread-safe. Of the
/// receiver's rail, under the circuit's lock.
class Come {
 public:
  enum class Is : uint8_t { news, known, impossible };
  /// Of a frame that has come, where `n_taken` have been taken.
  Is note(uint32_t number, uint32_t n_taken) {
    const auto ahead = static_cast<int32_t>(number - n_taken);
    if (ahead >= static_cast<int32_t>(kWindow)) {
      return Is::impossible;  // a sender has so many under way at most
    }
    if (ahead < 0 || has_come_[number % kWindow]) {
      return Is::known;
    }
    has_come_[number % kWindow] = true;
    return Is::news;
  }
  void forget(uint32_t number) { has_come_[number % kWindow] = false; }
  /// FrameHeader::come.
  uint32_t bits(uint32_t n_taken) const {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < kWindow; ++i) {
      bits |= has_come_[(n_taken + i) % kWindow] ? 1U << i : 0U;
    }
    return bits;
  }

 private:
  std::array<bool, kWindow> has_come_{};  // [number % kWindow], from n_taken on
};

}  // namespace ringbolt::circuit
