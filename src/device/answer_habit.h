#pragma once

#include <algorithm>
#include <cstdint>

namespace ringbolt::device {

/// Whether the program answers at once what it receives, as in a ping-pong: then the acknowledgement of a message may wait
/// for the packet of the answer, and leave with it. Times in ns, of one clock. Not thread-safe.
class AnswerHabit {
 public:
  /// Between a completion and the answer, a program that does little with it stays below; a peer, which measures how long
  /// an acknowledgement takes, hardly notices.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr uint64_t kPromptNs = 1'000'000;  // sanitizers make programs that much slower
#else
  static constexpr uint64_t kPromptNs = 10'000;
#endif

  /// The program was given the completion of a message.
  void note_received(uint64_t now_ns) { received_ns_ = now_ns; }
  /// The program sends.
  void note_sent(uint64_t now_ns) {
    if (is_answer_due()) {
      answers_ = now_ns - received_ns_ <= kPromptNs ? std::min(answers_ + 1, kEnoughAnswers) : 0;
      received_ns_ = 0;
    }
  }
  /// It looks for more instead.
  void note_unanswered() {
    answers_ = 0;
    received_ns_ = 0;
  }
  bool is_answer_due() const { return received_ns_ != 0; }
  bool is_prompt() const { return answers_ == kEnoughAnswers; }

 private:
  static constexpr uint32_t kEnoughAnswers = 2;

  uint64_t received_ns_ = 0;  // of the last message that was not answered; 0: none
  uint32_t answers_ = 0;      // in a row at once, up to kEnoughAnswers
};

}  // namespace ringbolt::device
