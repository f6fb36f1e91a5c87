// Every interleaving of the protocol itself (detail::FlagProtocol), over a memory whose stores may wait in buffers as
// those of x86-64 and AArch64 do: no wake-up is lost, and no flag that was given up ends without poison.
//
// A thread of the model is a function that is called anew for each of its steps: what its earlier steps found is played
// back to it, and the step behind those leaves it by an exception. So its whole state is the list of what it has found.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <ringbolt/completion_flag.h>

namespace ringbolt {
namespace {

enum class Verb : uint8_t { load, store, set_if_zero, add, fence, wake, sleep };

struct Step {
  Verb verb;
  size_t word = 0;
  uint64_t value = 0;
};

/// What a thread runs on: its past, and then the one step that it wants to take.
struct Model {
  std::vector<uint64_t> found;
  size_t played = 0;

  uint64_t take(Step step) {
    if (played == found.size()) {
      throw step;
    }
    return found[played++];
  }
};

CompletionFlag the_flag{};  // only its addresses count, and `uses`

template <bool kHasFences>
struct ModelAccess {
  Model* model;

  static size_t word_of(const void* at) {
    return static_cast<size_t>(static_cast<const std::byte*>(at) - reinterpret_cast<std::byte*>(&the_flag));
  }
  uint64_t load_acquire(const uint64_t& word) { return model->take({Verb::load, word_of(&word)}); }
  uint32_t load_relaxed(const uint32_t& word) {
    return static_cast<uint32_t>(model->take({Verb::load, word_of(&word)}));
  }
  void store_release(uint64_t& word, uint64_t value) { model->take({Verb::store, word_of(&word), value}); }
  void add(uint32_t& word, uint32_t amount) { model->take({Verb::add, word_of(&word), amount}); }
  void set_if_zero(uint64_t& word, uint64_t value) { model->take({Verb::set_if_zero, word_of(&word), value}); }
  void full_fence() {
    if (kHasFences) {
      model->take({Verb::fence});
    }
  }
  void wake_all(uint64_t& word) { model->take({Verb::wake, word_of(&word)}); }
  void sleep_while(uint64_t& word, uint32_t seen, uint64_t) { model->take({Verb::sleep, word_of(&word), seen}); }
  void order_for_device() {}
  void publish_to_device() {}
};

using Protocol = detail::FlagProtocol<ModelAccess<true>>;
using FencelessProtocol = detail::FlagProtocol<ModelAccess<false>>;
using Program = std::function<void(Model&)>;

struct Thread {
  std::vector<uint64_t> found;
  std::vector<std::pair<size_t, uint64_t>> buffer;  ///< stores that no other thread sees yet, the oldest first
  bool is_asleep = false;
  bool is_done = false;

  auto key() const { return std::tie(found, buffer, is_asleep, is_done); }
  bool operator<(const Thread& other) const { return key() < other.key(); }
};

struct State {
  std::map<size_t, uint64_t> memory;
  std::vector<Thread> threads;

  bool operator<(const State& other) const { return std::tie(memory, threads) < std::tie(other.memory, other.threads); }
};

class Checker {
 public:
  Checker(std::vector<Program> programs, bool has_buffers)
      : programs_(std::move(programs)), has_buffers_(has_buffers) {}

  /// Visits all states that can be reached. Empty: each end was as it should be.
  std::string run() {
    State first;
    first.threads.resize(programs_.size());
    std::vector<State> left{first};
    while (!left.empty() && problem_.empty()) {
      State state = std::move(left.back());
      left.pop_back();
      if (seen_.insert(state).second) {
        bool has_ended = true;
        for (size_t i = 0; i < programs_.size(); ++i) {
          has_ended &= !drain(state, i, left) & !advance(state, i, left);
        }
        if (has_ended) {
          look_at_end(state);
        }
      }
    }
    return problem_;
  }
  size_t states() const { return seen_.size(); }
  size_t ends() const { return ends_; }

 private:
  /// A buffered store reaches memory: of each word the oldest one, for stores to different words may pass each other.
  bool drain(const State& state, size_t i, std::vector<State>& left) {
    const auto& buffer = state.threads[i].buffer;
    std::set<size_t> words;
    for (size_t at = 0; at < buffer.size(); ++at) {
      if (words.insert(buffer[at].first).second) {
        State next = state;
        next.memory[buffer[at].first] = buffer[at].second;
        auto& its = next.threads[i].buffer;
        its.erase(its.begin() + static_cast<std::ptrdiff_t>(at));
        left.push_back(std::move(next));
      }
    }
    return !buffer.empty();
  }

  bool advance(const State& state, size_t i, std::vector<State>& left) {
    if (state.threads[i].is_done || state.threads[i].is_asleep) {
      return false;
    }
    Model model{state.threads[i].found};
    State next = state;
    try {
      programs_[i](model);
      next.threads[i].is_done = true;
    } catch (const Step& step) {
      if (!take(next, i, step)) {
        return true;  // it has to wait for its buffer
      }
    }
    left.push_back(std::move(next));
    return true;
  }

  bool take(State& state, size_t i, const Step& step) {
    Thread& thread = state.threads[i];
    uint64_t found = 0;
    if (step.verb == Verb::store) {
      if (has_buffers_) {
        thread.buffer.emplace_back(step.word, step.value);
      } else {
        state.memory[step.word] = step.value;
      }
    } else if (step.verb == Verb::load) {
      found = state.memory[step.word];
      for (const auto& [word, value] : thread.buffer) {
        found = word == step.word ? value : found;
      }
    } else if (!thread.buffer.empty()) {
      return false;
    } else if (step.verb == Verb::set_if_zero) {
      uint64_t& word = state.memory[step.word];
      word = word == 0 ? step.value : word;
    } else if (step.verb == Verb::add) {
      state.memory[step.word] = static_cast<uint32_t>(state.memory[step.word] + step.value);
    } else if (step.verb == Verb::wake) {
      for (Thread& other : state.threads) {
        other.is_asleep = false;
      }
    } else if (step.verb == Verb::sleep) {
      thread.is_asleep = static_cast<uint32_t>(state.memory[step.word]) == step.value;
    }
    thread.found.push_back(found);
    return true;
  }

  void look_at_end(const State& state) {
    ++ends_;
    const auto word = [&](size_t offset) {
      const auto found = state.memory.find(offset);
      return found == state.memory.end() ? 0 : found->second;
    };
    if (word(offsetof(CompletionFlag, parked)) != 0) {
      problem_ = "who sleeps was not counted back";
    }
    for (const Thread& thread : state.threads) {
      if (thread.is_asleep) {
        problem_ = "a waiter sleeps, and nobody will wake it";
      }
    }
    if (word(offsetof(CompletionFlag, abort_word)) != 0 &&
        (word(offsetof(CompletionFlag, seq)) & CompletionFlag::kPoison) == 0) {
      problem_ = "it was given up, and is not poisoned";
    }
  }

  std::vector<Program> programs_;
  bool has_buffers_;
  std::set<State> seen_;
  size_t ends_ = 0;
  std::string problem_;
};

constexpr uint64_t kWhy = 0x0000'0001'0002'0001;

template <class Kind = Protocol>
Program signaller(std::vector<uint64_t> numbers) {
  return [numbers](Model& model) {
    for (const uint64_t number : numbers) {
      Kind(the_flag, {&model}).signal(number);
    }
  };
}

template <class Kind = Protocol>
Program aborter(uint64_t why = kWhy) {
  return [why](Model& model) { Kind(the_flag, {&model}).abort(why); };
}

/// As wait() does it, but for the end of a slice, which would hide a wake-up that was lost.
template <class Kind = Protocol>
Program waiter(uint64_t wanted) {
  return [wanted](Model& model) {
    while (!detail::is_reached(model.take({Verb::load, offsetof(CompletionFlag, seq)}), wanted)) {
      Kind(the_flag, {&model}).park(wanted, 0);
    }
  };
}

void expect_sound(const std::vector<Program>& programs) {
  for (const bool has_buffers : {false, true}) {
    Checker checker(programs, has_buffers);
    EXPECT_EQ(checker.run(), "") << (has_buffers ? "with" : "without") << " store buffers";
    std::printf("%zu states, %zu ends\n", checker.states(), checker.ends());
    EXPECT_GT(checker.ends(), 0U);
  }
}

TEST(CompletionFlagInterleavings, signal_and_abort) { expect_sound({signaller({1, 2}), aborter()}); }

TEST(CompletionFlagInterleavings, signal_and_sleep) { expect_sound({signaller({1}), waiter(1)}); }

TEST(CompletionFlagInterleavings, sleep_until_the_second_signal) { expect_sound({signaller({1, 2}), waiter(2)}); }

TEST(CompletionFlagInterleavings, abort_and_sleep) { expect_sound({aborter(), waiter(1)}); }

TEST(CompletionFlagInterleavings, signals_abort_and_sleep) { expect_sound({signaller({1, 2}), aborter(), waiter(2)}); }

TEST(CompletionFlagInterleavings, two_aborts_and_two_sleepers) {
  expect_sound({aborter(), aborter(kWhy + 1), waiter(1), waiter(2)});
}

// The controls: the checker finds what the fences are for.
TEST(CompletionFlagInterleavings, without_fences_a_wake_up_is_lost) {
  Checker checker({signaller<FencelessProtocol>({1}), waiter<FencelessProtocol>(1)}, true);
  EXPECT_EQ(checker.run(), "a waiter sleeps, and nobody will wake it");
}

TEST(CompletionFlagInterleavings, without_fences_an_abort_is_lost) {
  Checker checker({signaller<FencelessProtocol>({1}), aborter<FencelessProtocol>()}, true);
  EXPECT_EQ(checker.run(), "it was given up, and is not poisoned");
}

}  // namespace
}  // namespace ringbolt
