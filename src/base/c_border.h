#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#define RINGBOLT_PUBLIC __attribute__((visibility("default")))

/// No exception crosses the C border: the callers are programs in C, and other languages' run times. Every exported
/// function is a function-try-block that ends in `catch (...) { return caught_...(); }`, and a table of functions is
/// filled with guarded<...> by put(). `noexcept` would not do: a thread that is cancelled within a system call of ours
/// unwinds through these functions, and that must go on. tests/house/border.py looks that nobody is forgotten.
namespace ringbolt::base {

/// What the exception that is being handled means: ENOMEM for want of memory, the number of an Error or a
/// std::system_error, and EIO for anything else, which is said once a process. Passes on the unwinding of a cancelled
/// thread. Only within a handler. Thread-safe.
int caught_errno();

// The same in the words of each kind of function.
int caught_minus_one();        ///< errno is set
std::nullptr_t caught_null();  ///< errno is set
void caught_nothing();         ///< nothing can be told
/// For an answer that is no failure: a count, a number, yes or no.
template <class Value>
Value caught_as(Value value) {
  caught_nothing();
  return value;
}

/// A function that may stand in a table: nothing but a cancellation leaves it.
template <class Signature>
class Guarded;

template <class Answer, class... Arguments>
class Guarded<Answer(Arguments...)> {
 public:
  using Function = Answer (*)(Arguments...);

  /// One that throws nothing needs no guard.
  constexpr Guarded(Answer (*call)(Arguments...) noexcept) : function_(call) {}  // NOLINT: as good as itself

  constexpr Function function() const { return function_; }

 private:
  explicit constexpr Guarded(Function call) : function_(call) {}
  // Only Guard and guarded_within() make one of a function that may throw, so a table can't be filled with an
  // unguarded one.
  template <auto, auto, class>
  friend struct Guard;
  template <auto kCall>
  friend constexpr auto guarded_within();

  Function function_;
};
template <class Answer, class... Arguments>
Guarded(Answer (*)(Arguments...) noexcept) -> Guarded<Answer(Arguments...)>;

template <auto kCall, auto kCaught, class = decltype(kCall)>
struct Guard;

template <auto kCall, auto kCaught, class Answer, class... Arguments>
struct Guard<kCall, kCaught, Answer (*)(Arguments...)> {
  static Answer call(Arguments... arguments) try { return kCall(arguments...); } catch (...) {
    return static_cast<Answer>(kCaught());
  }
  static constexpr auto entry() { return Guarded<Answer(Arguments...)>(call); }
};

/// `kCall` behind a guard that answers `kCaught()`, one of the above.
template <auto kCall, auto kCaught = caught_errno>
inline constexpr auto guarded = Guard<kCall, kCaught>::entry();

/// For the hot calls: `kCall` does nothing but jump into a function that is a function-try-block itself. A guard here
/// would make that jump a call.
template <auto kCall>
constexpr auto guarded_within() {
  return []<class Answer, class... Arguments>(Answer (*function)(Arguments...)) {
    return Guarded<Answer(Arguments...)>(function);
  }(kCall);
}

/// Fills a place of a table.
template <class Answer, class... Arguments>
void put(Answer (*&place)(Arguments...), std::type_identity_t<Guarded<Answer(Arguments...)>> entry) {
  place = entry.function();
}

}  // namespace ringbolt::base

/// What libraries of our own interfaces share: what a call refuses it says in words of the calling thread, too. Each
/// library has its own words. Thread-safe.
namespace ringbolt::c_border {

/// The words of the calling thread's last error.
std::string& last_error();
/// `code`, with its words. Where there is no memory for them, the number has to do.
int refuse(int code, std::string_view words) noexcept;
/// The errno of the exception that is being handled, with its words; ERANGE for std::out_of_range. Passes on the
/// unwinding of a cancelled thread. Only within a handler.
int refuse_caught();

/// What a call that may throw answers.
template <class Call>
int guarded_with_words(Call&& call) {
  try {
    return call();
  } catch (...) {
    return refuse_caught();
  }
}

/// Writes what `words()` says as snprintf() does: up to `size` bytes, the final zero included. Returns how many
/// characters there are in all, 0 where they can't be had.
template <class Words>
size_t write_words(char* text, size_t size, Words&& words) {
  std::string all;
  static_cast<void>(guarded_with_words([&] {
    all = words();
    return 0;
  }));
  if (text != nullptr && size > 0) {
    const size_t n = std::min(all.size(), size - 1);
    std::memcpy(text, all.data(), n);
    text[n] = '\0';
  }
  return all.size();
}

}  // namespace ringbolt::c_border
